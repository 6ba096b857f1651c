"""Datasets that are made from the digits of another: moved, changed, corrupted or overlaid."""

from . import affnist_style, corrupted, expanded  # noqa: F401  # register datasets
