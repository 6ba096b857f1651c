"""Recipes, the training loop, and what a run leaves behind."""

from .evaluate import Evaluation, evaluate
from .export import Exported, export_run, is_exported, load_predictor, open_exported
from .health import inspect_run
from .loop import DivergedError, train
from .objective import Objective
from .pipeline import Pipeline, info_of, load_splits, load_test
from .predict import Predictor, predict, read_image
from .pruning import StructuredPruning, prune_run, shrink_run
from .recipe import Recipe, load_recipe, packaged_recipes
from .run import Run, evaluate_run, load_run, load_split, load_split_for
from .session import Machine, check_machine
from .together import side_by_side, train_together
from .watch import Several, Silent, TensorBoard, Watcher

__all__ = [
    "DivergedError",
    "Evaluation",
    "Exported",
    "Machine",
    "Objective",
    "Pipeline",
    "Predictor",
    "Recipe",
    "Run",
    "Several",
    "Silent",
    "StructuredPruning",
    "TensorBoard",
    "Watcher",
    "check_machine",
    "evaluate",
    "evaluate_run",
    "export_run",
    "info_of",
    "inspect_run",
    "is_exported",
    "load_predictor",
    "load_recipe",
    "load_run",
    "load_split",
    "load_split_for",
    "load_splits",
    "load_test",
    "open_exported",
    "packaged_recipes",
    "predict",
    "prune_run",
    "read_image",
    "shrink_run",
    "side_by_side",
    "train",
    "train_together",
]
