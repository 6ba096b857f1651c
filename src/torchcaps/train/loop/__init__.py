"""Training: the loop, the session it moves, what it keeps, and what it says when it fails."""

from .divergence import DivergedError
from .loop import train
from .session import Session, use_channels_last
from .side_by_side import side_by_side
from .watch import Several, Silent, StartFacts, StoppedError, TensorBoard, Watcher

__all__ = [
    "DivergedError",
    "Session",
    "Several",
    "Silent",
    "StartFacts",
    "StoppedError",
    "TensorBoard",
    "Watcher",
    "side_by_side",
    "train",
    "use_channels_last",
]
