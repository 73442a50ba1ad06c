"""What releases cost: per release, event, window, sequence, several queries at once.

A loss is the largest logarithm of the ratio between the probabilities that two states, or
two paths, give to the same releases. A loss that comes back as a `Fraction` is exact; a
`float` is infinite, or rounded up where exact numbers would not fit 64 bits.
"""
