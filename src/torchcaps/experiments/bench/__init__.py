"""Speed and memory of layers, training steps and models, with the roofline beside them."""

from .bench import Bench, Point
from .chart import read_results, write_chart
from .layer import routing_points
from .model import model_points
from .roofline import Ceilings, Cost, LayerSize, measure_ceilings
from .run import SUITES, run_bench
from .step import TrainCase, train_points
from .timing import Effort, Timing

__all__ = [
    "SUITES",
    "Bench",
    "Ceilings",
    "Cost",
    "Effort",
    "LayerSize",
    "Point",
    "Timing",
    "TrainCase",
    "measure_ceilings",
    "model_points",
    "read_results",
    "routing_points",
    "run_bench",
    "train_points",
    "write_chart",
]
