"""What a recipe adds to plain training: annealing and pruning."""

from .annealed import AnnealedTraining
from .annealing import Annealing, check_driven
from .api import FinalResults, Technique
from .pruned import PrunedTraining

__all__ = [
    "AnnealedTraining",
    "Annealing",
    "FinalResults",
    "PrunedTraining",
    "Technique",
    "check_driven",
]
