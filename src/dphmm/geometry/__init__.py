"""Exact integer geometry: lattices, boundaries, hulls, and the answers that live there."""
