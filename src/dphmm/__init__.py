"""Private release of what a Markov chain is doing, under a policy drawn as a graph."""

__version__ = "0.1.0"
