"""Rows in, answers out: times, states, trips, maps, datasets and files."""
