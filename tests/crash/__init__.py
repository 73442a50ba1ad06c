"""Servers to stop, processes to kill and the small world they release."""
