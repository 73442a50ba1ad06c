"""Tracks of people: published datasets, plain files, and a synthetic city."""

from __future__ import annotations

from dphmm.tables.datasets.city import City, synthetic_city
from dphmm.tables.datasets.files import load_tracks
from dphmm.tables.datasets.geolife import load_geolife
from dphmm.tables.datasets.gowalla import load_gowalla
from dphmm.tables.datasets.placing import Placed, place_trips
from dphmm.tables.datasets.reading import BadRow, Loaded, LoadReport, Progress
from dphmm.tables.datasets.running_example import RunningExample, running_example
from dphmm.tables.datasets.tracks import Trip, cut_trips, resample, split_trips, to_states
from dphmm.tables.datasets.twins import same_person
from dphmm.tables.geo import Grid, LocalPlane
from dphmm.tables.maps import Map

__all__ = [
    "BadRow",
    "City",
    "Grid",
    "LoadReport",
    "Loaded",
    "LocalPlane",
    "Map",
    "Placed",
    "Progress",
    "RunningExample",
    "Trip",
    "cut_trips",
    "load_geolife",
    "load_gowalla",
    "load_tracks",
    "place_trips",
    "resample",
    "running_example",
    "same_person",
    "split_trips",
    "synthetic_city",
    "to_states",
]
