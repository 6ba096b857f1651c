"""Data that is drawn: a stand-in for each dataset, and examples with masks, poses and places."""

from . import masks, places, poses  # noqa: F401  # register datasets
