"""What was measured of a pretrained network, after its training, and how its card says it."""

from .evidence import Evidence, SeedMean, read_evidence
from .photographs import PHOTOGRAPHS, MeasuredPhotographs
from .rounding import Rounding, halved, measure_rounding
from .truth import TRUTH, describe_truth
from .turns import ANGLES, TURNS, MeasuredTurns, may_hint
from .views import VIEWS, MeasuredViews

__all__ = [
    "ANGLES",
    "PHOTOGRAPHS",
    "TRUTH",
    "TURNS",
    "VIEWS",
    "Evidence",
    "MeasuredPhotographs",
    "MeasuredTurns",
    "MeasuredViews",
    "Rounding",
    "SeedMean",
    "describe_truth",
    "halved",
    "may_hint",
    "measure_rounding",
    "read_evidence",
]
