"""Speed and memory of layers, training steps and models, with the roofline beside them."""

from .bench import Bench, Measurement
from .chart import write_chart
from .layer import routing_suite
from .memory import PeakMemory, release_memory
from .model import model_suite
from .roofline import Ceilings, Cost, LayerSize, measure_ceilings
from .row import BenchResults, BenchRow, read_rows, render_bench
from .run import run_bench
from .segmentation import segmentation_suite
from .step import TrainCase, train_suite
from .step_cost import measure_step
from .timing import Effort, Timing, Work, as_graph, time_by_turns, time_work

__all__ = [
    "Bench",
    "BenchResults",
    "BenchRow",
    "Ceilings",
    "Cost",
    "Effort",
    "LayerSize",
    "Measurement",
    "PeakMemory",
    "Timing",
    "TrainCase",
    "Work",
    "as_graph",
    "measure_ceilings",
    "measure_step",
    "model_suite",
    "read_rows",
    "release_memory",
    "render_bench",
    "routing_suite",
    "run_bench",
    "segmentation_suite",
    "time_by_turns",
    "time_work",
    "train_suite",
    "write_chart",
]
