"""Capsule networks for PyTorch.

The names below are those that most programs need; packages such as `torchcaps.layers` have more. A recipe
is trained by `torchcaps.train.train(torchcaps.load_recipe(NAME), FOLDER)`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .data import dataset_info, list_datasets, load_dataset
    from .inspection import count_parameters, inspect
    from .models import change_classes, list_models
    from .pages.explained import explain  # from its module: mypy loses it in a cycle of imports
    from .parse import parse_tree, quantized
    from .routing import list_routings
    from .train import load_recipe, load_run, recipe_for_data
    from .zoo import create_model, evaluate_run, list_weights, load_pretrained, predict

__version__ = "0.1.0"
__all__ = [
    "__version__",
    "change_classes",
    "count_parameters",
    "create_model",
    "dataset_info",
    "evaluate_run",
    "explain",
    "inspect",
    "list_datasets",
    "list_models",
    "list_routings",
    "list_weights",
    "load_dataset",
    "load_pretrained",
    "load_recipe",
    "load_run",
    "parse_tree",
    "predict",
    "quantized",
    "recipe_for_data",
]

_HOMES = {
    "data": ("dataset_info", "list_datasets", "load_dataset"),
    "inspection": ("count_parameters", "inspect"),
    "models": ("change_classes", "list_models"),
    "pages": ("explain",),
    "parse": ("parse_tree", "quantized"),
    "routing": ("list_routings",),
    "train": ("load_recipe", "load_run", "recipe_for_data"),
    "zoo": ("create_model", "evaluate_run", "list_weights", "load_pretrained", "predict"),
}
_HOME = {name: package for package, names in _HOMES.items() for name in names}
_PACKAGES = set(_HOMES) | {
    "bench",
    "core",
    "experiments",
    "layers",
    "losses",
    "prune",
    "viz",
}


def __getattr__(name: str) -> Any:
    # torch takes over a second to import: `torchcaps --help` must not wait for it
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    if name in _PACKAGES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_PACKAGES})
