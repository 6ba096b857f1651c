"""Chapter 7, localization of vehicles in flight: the runs behind its table and figure, and beyond them."""

from . import beyond, calibration, runs, sentinel
from .claims import CHAPTER

__all__ = ["CHAPTER", "beyond", "calibration", "runs", "sentinel"]
