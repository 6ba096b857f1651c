"""A recipe is everything a run needs, as plain typed data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torchcaps.core import Plain, UserError, as_plain, build_dataclass, sketching
from torchcaps.data import Augment, Fit, Preprocess
from torchcaps.losses import list_losses
from torchcaps.models import MODELS, Network, build_model
from torchcaps.prune import Lobster, measure_units

from ..objective import LossSettings
from ..optimizer import Optim
from ..tasks import AnyTask, task_named
from ..techniques import Annealing, check_driven
from .yaml_file import as_yaml


@dataclass(frozen=True, kw_only=True)
class Data:
    """Which images, and what is done to them.

    Attributes:
        name: A dataset, or `folder:PATH` for your own files.
        validation: Share of the training images that is set aside to validate; not used where a folder has
            its own validation images.
        split_seed: Seed that chooses the validation images, and the images of `limit`.
        limit: Use this many training images; 0 means all.
        fit: How files of other sizes are brought to the size of the network: "crop" keeps the middle, "pad"
            adds bands of zeros, "stretch" changes proportions.
        fresh: Draw the training examples anew in every epoch; for datasets that are rendered or drawn.
        images_per_place: Images of each place in a batch of a retrieval task.
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
        model: The name of a model, and those of its fields that are replaced.
        data: Which images, and what is done to them.
        epochs: How many epochs to train at most.
        batch_size: Images in a step, of all devices together.
        patience: Stop after so many epochs without a better validation; 0 never stops early.
        select_by: The metric of the validation images that decides which epoch is kept: "loss", or one of
            the task's. Of epochs that are equal in it, the one with the lowest loss is kept.
        seed: Seed of the initial weights, the order of images and random changes.
        compile: Compile the network with torch.compile.
        start_from: Folder of a run, or file of trunk weights, whose layers the model takes over; on the
            command line also the name of a pretrained network.
        keep_epochs: Epochs, counted from 1, whose weights stay as `epoch-N.safetensors`.
        loss: What is minimised.
        optim: The optimizer, and how its rate changes.
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
    def from_plain(cls, values: object, where: str) -> Recipe:
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
        with sketching():
            return build_model(self.model)


def _task_of(model: object) -> AnyTask:
    if not isinstance(model, Mapping) or not isinstance(model.get("name"), str):
        raise UserError("recipe.model needs a 'name', which is text; other keys override its fields")
    return task_named(MODELS[model["name"]].task)


def build(values: object, where: str = "recipe") -> Recipe:
    """A recipe from plain data; unknown keys and wrong types are errors with a place."""
    return Recipe.from_plain(values, where)


def recipe_as_yaml(recipe: Recipe) -> str:
    """The resolved recipe, every default written out."""
    return as_yaml(recipe_as_json(recipe))


def recipe_as_json(recipe: Recipe) -> Plain:
    """The resolved recipe as plain lists, mappings and numbers."""
    return as_plain(recipe)
