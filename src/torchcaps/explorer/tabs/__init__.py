"""The tabs beside the explorer: which have something to show, and those of poses and of parts."""

from .parts import PartsShow
from .poses import PoseShow
from .tabs import describe_tabs

__all__ = [
    "PartsShow",
    "PoseShow",
    "describe_tabs",
]
