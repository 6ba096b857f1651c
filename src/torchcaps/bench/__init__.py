"""Speed and memory of layers, training steps and models, with the roofline beside them."""

from .bench import Bench, Point
from .chart import read_rows, write_chart
from .layer import routing_points
from .memory import PeakMemory, release_memory
from .model import model_points
from .roofline import Ceilings, Cost, LayerSize, measure_ceilings
from .run import SUITES, run_bench
from .step import TrainCase, train_points
from .table import render_bench
from .timing import Effort, Timing, Work, as_graph, time_work

__all__ = [
    "SUITES",
    "Bench",
    "Ceilings",
    "Cost",
    "Effort",
    "LayerSize",
    "PeakMemory",
    "Point",
    "Timing",
    "TrainCase",
    "Work",
    "as_graph",
    "measure_ceilings",
    "model_points",
    "read_rows",
    "release_memory",
    "render_bench",
    "routing_points",
    "run_bench",
    "time_work",
    "train_points",
    "write_chart",
]
