"""A recipe is everything a run needs, as plain typed data."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch

from torchcaps.core import MissingDataError, UserError, as_plain, build_dataclass, shown, unknown_name
from torchcaps.data import FOLDER_PREFIX, Augment, Fit, Preprocess
from torchcaps.losses import list_losses
from torchcaps.models import MODELS, Network, build_model
from torchcaps.prune import Lobster, measure_units
from torchcaps.storage import read_mapping, read_text

from ..objective import LossSettings
from ..optimizer import Optim
from ..tasks import AnyTask, task_named
from ..techniques import Annealing, check_driven
from .yaml_file import as_yaml, parse_yaml


@dataclass(frozen=True, kw_only=True)
class Data:
    """Which images, and what is done to them.

    Attributes:
        name: A dataset, or `folder:PATH` for your own files.
        validation: Share of the training images that is set aside to validate.
        split_seed: Chooses those, and the images of `limit`.
        limit: Use this many training images; 0 means all.
        fit: How files of other sizes are brought to the size of the network: "crop" keeps the middle, "pad"
            adds bands of zeros, "stretch" changes proportions.
        fresh: Draw the training examples anew in every epoch; for datasets that are rendered or drawn.
        images_per_place: In each batch of a retrieval task.
        preprocess: What happens to every image.
        augment: Random changes of training images.
    """

    name: str
    validation: float = 0.05
    split_seed: int = 0
    limit: int = 0
    fit: Fit = "crop"
    fresh: bool = False
    images_per_place: int = 5
    preprocess: Preprocess = field(default_factory=Preprocess)
    augment: Augment = field(default_factory=Augment)

    def __post_init__(self) -> None:
        if not 0 < self.validation < 1:
            raise UserError(f"recipe.data.validation must lie between 0 and 1, got {self.validation}")
        if self.limit < 0:
            raise UserError(f"recipe.data.limit must not be negative, got {self.limit}; 0 means all images")
        if self.images_per_place < 2:
            raise UserError(f"recipe.data.images_per_place must be at least 2, got {self.images_per_place}")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One training run; the model decides the task.

    Attributes:
        model: The name of a model, and fields of it that differ.
        data: Which images.
        epochs: At most.
        batch_size: Of all devices together.
        patience: Stop after so many epochs without a better validation; 0 never stops early.
        select_by: The metric of the validation images that decides which epoch is kept: "loss", or one of
            the task's.
        seed: Of weights, order and random changes.
        compile: Compile the network with torch.compile.
        start_from: Folder of a run, or file of trunk weights, whose layers the model takes over.
        keep_epochs: Counted from one; the weights after those epochs stay as `epoch-N.safetensors`.
        loss: What is minimised.
        optim: How weights move.
        annealing: Find the number of routing iterations while training.
        pruning: Prune while training.
    """

    model: dict[str, Any]
    data: Data
    epochs: int
    batch_size: int = 128
    patience: int = 0
    select_by: str = "loss"
    seed: int = 42
    compile: bool = False
    start_from: str = ""
    keep_epochs: tuple[int, ...] = ()
    loss: LossSettings = field(default_factory=LossSettings)
    optim: Optim = field(default_factory=Optim)
    annealing: Annealing | None = None
    pruning: Lobster | None = None

    @classmethod
    def from_plain(cls, values: Any, where: str) -> Recipe:
        """From mappings, lists and numbers; a loss without a name is the usual one of the model's task."""
        if isinstance(values, Mapping) and isinstance(values.get("loss", {}), Mapping):
            loss = {"name": _task_of(values.get("model")).default_loss, **values.get("loss", {})}
            values = {**values, "loss": loss}
        return build_dataclass(cls, values, where)

    @property
    def task(self) -> AnyTask:
        """What the model is for."""
        return _task_of(self.model)

    def __post_init__(self) -> None:
        for key in ("epochs", "batch_size"):
            if getattr(self, key) < 1:
                raise UserError(f"recipe.{key} must be at least 1, got {getattr(self, key)}")
        if self.patience < 0:
            raise UserError(f"recipe.patience must not be negative, got {self.patience}")
        if any(epoch < 1 for epoch in self.keep_epochs):
            raise UserError(f"recipe.keep_epochs counts from 1, got {list(self.keep_epochs)}")
        self._check_task()
        self._check_techniques()

    def _check_task(self) -> None:
        task = self.task
        task.metric(self.select_by)
        task.check_augment(self.data.augment)
        if self.loss.task_loss.task != task.name:
            raise UserError(
                f"recipe.loss: {self.loss.name} is a loss of {self.loss.task_loss.task}, model "
                f"{self.model['name']} is for {task.name}; its losses are {', '.join(list_losses(task.name))}"
            )

    def _check_techniques(self) -> None:
        if self.annealing is None and self.pruning is None:
            return
        if self.annealing is not None and self.pruning is not None:
            raise UserError(
                "recipe.pruning and recipe.annealing exclude each other: "
                "annealing goes back to earlier weights, in which less was pruned"
            )
        if self.optim.average:
            raise UserError(
                "recipe.optim.average excludes annealing and pruning, which change weights at once"
            )
        if self.annealing is not None:
            if self.patience:
                raise UserError(
                    "recipe.patience and recipe.annealing exclude each other: set annealing.patience"
                )
            check_driven(self.sketch(), self.annealing)
        if self.pruning is not None:
            self._check_least(self.pruning.min_metric)
            measure_units(self.sketch(), self.pruning)  # raises where there is nothing to prune

    def _check_least(self, least: float | None) -> None:
        is_share = self.task.leading_metric.unit == "%"
        if least is not None and is_share and not 0 <= least <= 1:
            raise UserError(f"recipe.pruning.min_metric must lie between 0 and 1, got {least}")

    def sketch(self) -> Network:
        """The model without memory for its weights."""
        with torch.device("meta"):
            return build_model(self.model)


def _task_of(model: Any) -> AnyTask:
    if not isinstance(model, Mapping) or not isinstance(model.get("name"), str):
        raise UserError("recipe.model needs a 'name', which is text; other keys override its fields")
    return task_named(MODELS[model["name"]].task)


def read_recipe(folder: Path) -> Recipe | None:
    """The recipe of the run in `folder`, also of an earlier version; None where there is no run."""
    path = folder / "recipe.json"
    if not path.is_file():
        return None
    values = read_mapping(path)
    try:
        return stored_recipe(values, str(path))
    except UserError as error:
        raise UserError(f"the run in {folder} has a recipe.json that cannot be read: {error}") from error


def stored_recipe(values: Any, where: str = "recipe") -> Recipe:
    """The recipe that a run wrote down, read with the keys of today.

    Before 0.1.0 every loss was stored with the settings of the margin loss, folders of images were stretched,
    and pruning began at a `min_accuracy`.
    """
    if not isinstance(values, dict) or "select_by" in values:
        return build(values, where)
    values = copy.deepcopy(values)
    groups = (values.get(key) for key in ("loss", "data", "pruning"))
    loss, data, pruning = (group if isinstance(group, dict) else {} for group in groups)
    if loss.get("name") != "margin":
        for key in ("present", "absent", "absent_weight"):
            loss.pop(key, None)
    data.setdefault("fit", "stretch" if str(data.get("name")).startswith(FOLDER_PREFIX) else "crop")
    if "min_accuracy" in pruning:
        pruning["min_metric"] = pruning.pop("min_accuracy") or None
    return build(values, where)


def build(values: Any, where: str = "recipe") -> Recipe:
    """A recipe from plain data; unknown keys and wrong types are errors with a place."""
    return Recipe.from_plain(values, where)


def packaged_recipes() -> list[str]:
    """Names of the recipes shipped with the package, such as `mnist/dr_capsnet`."""
    return list(_packaged_names())


@cache
def _packaged_names() -> tuple[str, ...]:
    root = files("torchcaps") / "recipes"
    folders = sorted((entry for entry in root.iterdir() if entry.is_dir()), key=lambda entry: entry.name)
    return tuple(
        f"{folder.name}/{entry.name.removesuffix('.yaml')}"
        for folder in folders
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".yaml")
    )


def load_recipe(
    name: str | Path, overrides: Iterable[str] = (), changes: Mapping[str, object] | None = None
) -> Recipe:
    """The recipe at a path or of a packaged name, with `key.key=value` replaced, after `changes`.

    Examples:
        >>> recipe = load_recipe("mnist/dr_capsnet", ["epochs=3", "optim.learning_rate=3e-4"])
        >>> recipe.epochs, recipe.optim.learning_rate
        (3, 0.0003)
    """
    return build(apply_overrides(with_changes(read_values(name), changes or {}), overrides))


def read_values(name: str | Path) -> dict[str, Any]:
    """The keys that a recipe states, at a path or of a packaged name."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise MissingDataError(f"no recipe at {path}")
        return _keys(read_text(path), str(name))
    if str(name) not in packaged_recipes():
        advice = "`torchcaps list recipes` shows the names, and a file must end in .yaml"
        raise unknown_name("recipe", str(name), packaged_recipes(), advice)
    return copy.deepcopy(_packaged_keys(str(name)))


@cache  # experiments read the same few files thousands of times
def _packaged_keys(name: str) -> dict[str, Any]:
    return _keys((files("torchcaps") / "recipes" / f"{name}.yaml").read_text(encoding="utf-8"), name)


def _keys(text: str, name: str) -> dict[str, Any]:
    values = parse_yaml(text, name)
    if not isinstance(values, dict):
        raise UserError(
            f"{name} should hold the keys of a recipe, such as model and data; it has {shown(values)}"
        )
    return values


def apply_overrides(values: Any, overrides: Iterable[str]) -> Any:
    """The nested mapping with each `a.b=value` put in its place; values are read as YAML."""
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not key:
            raise UserError(f"--set takes key=value, got {override!r}")
        _put(values, key, parse_yaml(text, f"--set {key}"), f"--set {override}")
    return values


def with_changes(values: Mapping[str, Any], changes: Mapping[str, object]) -> dict[str, Any]:
    """The nested mapping with each value of `changes` put in its place, which its key `a.b` names.

    Changes are made in their order. The values given are left as they are.
    """
    changed = copy.deepcopy(dict(values))
    for key, value in changes.items():
        _put(changed, key, copy.deepcopy(value), f"cannot change {key}")
    return changed


def _put(values: dict[str, Any], key: str, value: object, words: str) -> None:
    """Put a value in the place of a nested mapping that its key `a.b` names; `words` begin an error."""
    *parents, last = key.split(".")
    for parent in parents:
        values = values.setdefault(parent, {})
        if not isinstance(values, dict):
            raise UserError(f"{words}: {parent} is a single value, not a group of keys")
    values[last] = value


def recipe_as_yaml(recipe: Recipe) -> str:
    """The resolved recipe, every default written out."""
    return as_yaml(recipe_as_json(recipe))


def recipe_as_json(recipe: Recipe) -> dict[str, Any]:
    """The resolved recipe as plain lists, mappings and numbers."""
    plain: dict[str, Any] = as_plain(recipe)
    return plain
