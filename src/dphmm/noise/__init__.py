"""Where a true state meets noise: mechanisms, samplers, randomness."""
