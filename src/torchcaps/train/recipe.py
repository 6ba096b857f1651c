"""A recipe is everything a run needs, as plain typed data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch
import yaml
from torch import nn

from torchcaps.core.errors import MissingDataError, UserError, unknown_name
from torchcaps.core.fields import build_dataclass
from torchcaps.data import Augment, Preprocess
from torchcaps.models import create_model
from torchcaps.prune import Lobster, measure_units

from .annealing import Annealing, check_driven

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Data:
    """Which images, and what is done to them."""

    name: str
    validation: float = 0.05
    split_seed: int = 0
    limit: int = 0  # use this many training images, chosen by the split seed; 0 means all
    preprocess: Preprocess = field(default_factory=Preprocess)
    augment: Augment = field(default_factory=Augment)

    def __post_init__(self) -> None:
        if not 0 < self.validation < 1:
            raise UserError(f"recipe.data.validation must lie between 0 and 1, got {self.validation}")
        if self.limit < 0:
            raise UserError(f"recipe.data.limit must not be negative, got {self.limit}; 0 means all images")


@dataclass(frozen=True, kw_only=True)
class Loss:
    """What is minimised.

    `reconstruction` weighs the sum of squared pixel errors of the decoder, `coupling_entropy` the bits that
    say where couplings of the last routed layer lie; the latter counts in training alone.
    """

    name: Literal["margin", "spread", "cross_entropy"] = "margin"
    present: float = 0.9
    absent: float = 0.1
    absent_weight: float = 0.5
    reconstruction: float = 0.0
    coupling_entropy: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Optim:
    """Adam, with a learning rate that falls by `decay` each epoch, or smoothly every `decay_steps` steps."""

    learning_rate: float = 1e-3
    decay: float = 1.0
    decay_steps: int = 0
    floor: float = 0.0
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        for key in ("learning_rate", "decay"):
            if getattr(self, key) <= 0:
                raise UserError(f"recipe.optim.{key} must be positive, got {getattr(self, key)}")
        for key in ("decay_steps", "floor", "weight_decay"):
            if getattr(self, key) < 0:
                raise UserError(f"recipe.optim.{key} must not be negative, got {getattr(self, key)}")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One training run. `batch_size` is that of all devices together; `patience` 0 never stops early.

    `start_from` is the folder of a run, or a file of trunk weights, whose layers the model takes over.
    `keep_epochs` counts from one; the weights after those epochs stay as `epoch-N.safetensors`.
    """

    model: dict[str, Any]
    data: Data
    epochs: int
    batch_size: int = 128
    patience: int = 0
    seed: int = 42
    compile: bool = False
    start_from: str = ""
    keep_epochs: tuple[int, ...] = ()
    loss: Loss = field(default_factory=Loss)
    optim: Optim = field(default_factory=Optim)
    annealing: Annealing | None = None
    pruning: Lobster | None = None

    def __post_init__(self) -> None:
        if "name" not in self.model:
            raise UserError("recipe.model needs a 'name'; other keys override fields of that model")
        for key in ("epochs", "batch_size"):
            if getattr(self, key) < 1:
                raise UserError(f"recipe.{key} must be at least 1, got {getattr(self, key)}")
        if self.patience < 0:
            raise UserError(f"recipe.patience must not be negative, got {self.patience}")
        if any(epoch < 1 for epoch in self.keep_epochs):
            raise UserError(f"recipe.keep_epochs counts from 1, got {list(self.keep_epochs)}")
        if self.annealing is not None:
            self._check_annealing(self.annealing)
        if self.pruning is not None:
            self._check_pruning(self.pruning)

    def _check_annealing(self, settings: Annealing) -> None:
        if self.patience:
            raise UserError("recipe.patience and recipe.annealing exclude each other: set annealing.patience")
        check_driven(self.sketch(), settings)

    def _check_pruning(self, settings: Lobster) -> None:
        if self.annealing is not None:
            raise UserError(
                "recipe.pruning and recipe.annealing exclude each other: "
                "annealing goes back to earlier weights, in which less was pruned"
            )
        measure_units(self.sketch(), settings)  # raises where there is nothing to prune

    def sketch(self) -> nn.Module:
        """The model without memory for its weights."""
        options = dict(self.model)
        with torch.device("meta"):
            return create_model(options.pop("name"), **options)


def build(kind: type[T], values: Any, where: str = "recipe") -> T:
    """Build the dataclass `kind` from plain data; unknown keys and wrong types are errors with a place."""
    return build_dataclass(kind, values, where)


def packaged_recipes() -> list[str]:
    """Names of the recipes shipped with the package, such as `mnist/dr_capsnet`."""
    root = files("torchcaps") / "recipes"
    folders = sorted((entry for entry in root.iterdir() if entry.is_dir()), key=lambda entry: entry.name)
    return [
        f"{folder.name}/{entry.name.removesuffix('.yaml')}"
        for folder in folders
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".yaml")
    ]


def load_recipe(
    name: str | Path, overrides: Iterable[str] = (), changes: Mapping[str, object] | None = None
) -> Recipe:
    """The recipe at a path or of a packaged name, with `key.key=value` replaced, after `changes`."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise MissingDataError(f"no recipe at {path}")
        text = _read_text(path)
    elif str(name) in packaged_recipes():
        text = (files("torchcaps") / "recipes" / f"{name}.yaml").read_text()
    else:
        advice = "`torchcaps list recipes` shows the names, and a file must end in .yaml"
        raise unknown_name("recipe", str(name), packaged_recipes(), advice)
    values = _parse(text, str(name))
    if not isinstance(values, dict):
        raise UserError(f"{name} should hold the keys of a recipe, such as model and data; it has {values!r}")
    return build(Recipe, apply_overrides(with_changes(values, changes or {}), overrides))


def _read_text(path: Path) -> str:
    try:
        return path.read_text()
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not a text file: {error}") from error


def _parse(text: str, name: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UserError(f"{name} is not valid YAML: {error}") from error


def apply_overrides(values: Any, overrides: Iterable[str]) -> Any:
    """The nested mapping with each `a.b=value` put in its place; values are read as YAML."""
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not key:
            raise UserError(f"--set takes key=value, got {override!r}")
        *parents, last = key.split(".")
        place = values
        for parent in parents:
            place = place.setdefault(parent, {})
            if not isinstance(place, dict):
                raise UserError(f"--set {override}: {parent} is a single value, not a group of keys")
        place[last] = _parse(text, f"--set {key}")
    return values


def with_changes(values: Mapping[str, Any], changes: Mapping[str, object]) -> dict[str, Any]:
    """The nested mapping with each value of `changes` put in its place, which its key `a.b` names.

    Changes are made in their order. The values given are left as they are.
    """
    changed = deepcopy(dict(values))
    for key, value in changes.items():
        *parents, last = key.split(".")
        place = changed
        for parent in parents:
            place = place.setdefault(parent, {})
            if not isinstance(place, dict):
                raise UserError(f"cannot change {key}: {parent} is a single value, not a group of keys")
        place[last] = deepcopy(value)
    return changed


def recipe_as_yaml(recipe: Recipe) -> str:
    """The resolved recipe, every default written out."""
    return yaml.safe_dump(recipe_as_json(recipe), sort_keys=False)


def recipe_as_json(recipe: Recipe) -> dict[str, Any]:
    """The resolved recipe as plain lists, mappings and numbers."""

    def plain(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: plain(item) for key, item in value.items()}
        return [plain(item) for item in value] if isinstance(value, list | tuple) else value

    return plain(asdict(recipe))
