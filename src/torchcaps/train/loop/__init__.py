"""Training: the loop, the session it moves, what it keeps, and what it says when it fails."""

from .channels_last import use_channels_last
from .divergence import DivergedError
from .loop import train
from .session import Session
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
