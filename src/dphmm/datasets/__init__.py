"""Tracks of people: published datasets, plain files, and a synthetic city."""

from __future__ import annotations

from dphmm.datasets.city import City, Trip, synthetic_city

__all__ = ["City", "Trip", "synthetic_city"]
