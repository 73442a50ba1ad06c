"""How states move: beliefs, inference, Markov models."""
