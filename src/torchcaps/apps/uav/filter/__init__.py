"""The point-mass filter and the parts it is made of."""

from .backend import Backend
from .choose_backend import fast_backend
from .descriptors import STORAGES, Codebook, Descriptors, Storage, learn_codebook
from .estimate import Estimate
from .grid import Grid
from .likelihood import Likelihood, bayesian_likelihood, linear_likelihood, ratio_likelihood
from .motion import MotionNoise, Odometry, spread
from .plain import PlainBackend
from .point_mass import FilterSettings, PointMassFilter

__all__ = [
    "STORAGES",
    "Backend",
    "Codebook",
    "Descriptors",
    "Estimate",
    "FilterSettings",
    "Grid",
    "Likelihood",
    "MotionNoise",
    "Odometry",
    "PlainBackend",
    "PointMassFilter",
    "Storage",
    "bayesian_likelihood",
    "fast_backend",
    "learn_codebook",
    "linear_likelihood",
    "ratio_likelihood",
    "spread",
]
