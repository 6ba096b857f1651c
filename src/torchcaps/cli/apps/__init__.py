"""The commands of the applications: nodules in CT, rotations, flights."""

from . import lung, lung_segment, pose, uav, uav_flights

__all__ = [
    "lung",
    "lung_segment",
    "pose",
    "uav",
    "uav_flights",
]
