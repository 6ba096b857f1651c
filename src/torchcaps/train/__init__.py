"""Recipes, tasks, the training loop, and what a run leaves behind."""

from .data_card import DataCard
from .divergence import DivergedError
from .evaluate import evaluate
from .export import Exported, export_run, is_exported, load_predictor, open_exported
from .fit_to_data import Fitted, name_dataset, recipe_for_data, run_name
from .health import inspect_run
from .loop import train
from .machine import Machine, check_machine, device_of, has_native_bf16, launch, settled
from .objective import LossSettings, Objective
from .optimizer import Optim
from .pipeline import Batch, Pipeline, Source
from .predict import Predictor, answers, predict, read_image, top_classes
from .pruning import StructuredPruning, prune_run, shrink_run
from .recipe import (
    Data,
    Recipe,
    build,
    load_recipe,
    packaged_recipes,
    read_recipe,
    recipe_as_json,
    recipe_as_yaml,
    stored_recipe,
)
from .recipe_keys import annotated_recipe
from .results import provenance, source_commit
from .run import Run, evaluate_run, load_labelled, load_run, load_split
from .side_by_side import side_by_side
from .tasks import TASKS, Answer, AnyTask, Evaluation, Task, task_named
from .techniques import Annealing, set_iterations
from .watch import Several, Silent, StoppedError, TensorBoard, Watcher

__all__ = [
    "TASKS",
    "Annealing",
    "Answer",
    "AnyTask",
    "Batch",
    "Data",
    "DataCard",
    "DivergedError",
    "Evaluation",
    "Exported",
    "Fitted",
    "LossSettings",
    "Machine",
    "Objective",
    "Optim",
    "Pipeline",
    "Predictor",
    "Recipe",
    "Run",
    "Several",
    "Silent",
    "Source",
    "StoppedError",
    "StructuredPruning",
    "Task",
    "TensorBoard",
    "Watcher",
    "annotated_recipe",
    "answers",
    "build",
    "check_machine",
    "device_of",
    "evaluate",
    "evaluate_run",
    "export_run",
    "has_native_bf16",
    "inspect_run",
    "is_exported",
    "launch",
    "load_labelled",
    "load_predictor",
    "load_recipe",
    "load_run",
    "load_split",
    "name_dataset",
    "open_exported",
    "packaged_recipes",
    "predict",
    "provenance",
    "prune_run",
    "read_image",
    "read_recipe",
    "recipe_as_json",
    "recipe_as_yaml",
    "recipe_for_data",
    "run_name",
    "set_iterations",
    "settled",
    "shrink_run",
    "side_by_side",
    "source_commit",
    "stored_recipe",
    "task_named",
    "top_classes",
    "train",
]
