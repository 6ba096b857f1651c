"""Drawn photographs of the test digits: which are read right, which are refused, and which are misread."""

from . import measure  # noqa: F401  # registers the suite
