"""Tracks of people: published datasets, plain files, and a synthetic city."""

from __future__ import annotations

from dphmm.datasets.city import City, synthetic_city
from dphmm.datasets.files import load_tracks
from dphmm.datasets.geolife import load_geolife
from dphmm.datasets.gowalla import load_gowalla
from dphmm.datasets.reading import BadRow, Loaded, LoadReport, Progress
from dphmm.datasets.tracks import Trip, cut_trips, resample, split_trips, to_states

__all__ = [
    "BadRow",
    "City",
    "LoadReport",
    "Loaded",
    "Progress",
    "Trip",
    "cut_trips",
    "load_geolife",
    "load_gowalla",
    "load_tracks",
    "resample",
    "split_trips",
    "synthetic_city",
    "to_states",
]
