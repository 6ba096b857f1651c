"""What was measured of a pretrained network, after its training, and how its card says it."""

from .evidence import Evidence, SeedMean, read_evidence
from .rounding import Rounding, halved, measure_rounding
from .truth import TRUTH, describe_truth
from .turns import ANGLES, TURNS, may_hint, say_turns
from .views import VIEWS, MeasuredViews

__all__ = [
    "ANGLES",
    "TRUTH",
    "TURNS",
    "VIEWS",
    "Evidence",
    "MeasuredViews",
    "Rounding",
    "SeedMean",
    "describe_truth",
    "halved",
    "may_hint",
    "measure_rounding",
    "read_evidence",
    "say_turns",
]
