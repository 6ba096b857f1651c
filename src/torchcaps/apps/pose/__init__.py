"""Pose: objects are rendered in known rotations, and networks learn to tell class and rotation."""

from .estimate import Estimator
from .opengl import opengl_renderer
from .render import EngineName, choose_engine, prepare_meshes, render_scene
from .scene import Scene, load_scene, with_meshes
from .uncertainty import (
    COVERED_SHARE,
    calibrate_run,
    coverage,
    forgives_symmetries,
    has_votes,
    judge_run,
    known_calibration,
)

__all__ = [
    "COVERED_SHARE",
    "EngineName",
    "Estimator",
    "Scene",
    "calibrate_run",
    "choose_engine",
    "coverage",
    "forgives_symmetries",
    "has_votes",
    "judge_run",
    "known_calibration",
    "load_scene",
    "opengl_renderer",
    "prepare_meshes",
    "render_scene",
    "with_meshes",
]
