"""What a recipe leaves open, chosen from the data: classes, channels and batch size."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from torchcaps.core import Plain, UserError, unknown_name
from torchcaps.data import DATASETS, FOLDER_PREFIX, Outline, outline_dataset
from torchcaps.data.folders import folder_path

from .load import read_recipe
from .recipe import Recipe, build
from .values import apply_overrides, packaged_recipes, read_values, with_changes

_LEAST_STEPS = 4  # an epoch of one or two steps teaches little
_AVERAGED_EPOCHS = 2  # a longer moving average of few steps is mostly that of weights that have not learnt


class Fitted(NamedTuple):
    """A recipe, its keys that were chosen from the data, and whether `data` replaced its own dataset."""

    recipe: Recipe
    chosen: dict[str, int | float]
    has_other_data: bool


def recipe_for_data(
    name: str | Path,
    overrides: Iterable[str] = (),
    *,
    data: str | None = None,
    data_dir: Path | None = None,
    devices: int = 1,
    find_start: Callable[[str], Path] = Path,
) -> Fitted:
    """The recipe `name`, as `load_recipe` reads it, with what it leaves open chosen from its data.

    Open are the keys that neither the recipe nor `overrides` state. Where `data` names another dataset than
    the recipe's, what the recipe states about its own does not count. A batch is halved until an epoch has
    four steps, as far as devices share it evenly and places have all their images in it. A moving average of
    the weights spans the steps of two epochs at most.

    Args:
        name: A packaged recipe or the path of a YAML file.
        overrides: `key.key=value`, as after `--set`.
        data: Another dataset, `folder:PATH`, or the path of a folder.
        data_dir: Folder of the datasets.
        devices: Processes that share a batch.
        find_start: As in `train`. Where the run that it finds takes images in colour, so does the recipe, and
            grey files of a folder are read in RGB.

    Examples:
        >>> fitted = recipe_for_data("photos/efficient_capsnet", data="synthetic_mnist")
        >>> fitted.chosen
        {'model.in_channels': 1}
    """
    overrides, own = list(overrides), read_values(name)
    named = {} if data is None else {"data.name": name_dataset(data)}
    values = apply_overrides(with_changes(own, named), overrides)
    recipe = build(values)
    is_other = recipe.data.name != (own.get("data") or {}).get("name")
    if not is_other and not recipe.data.name.startswith(FOLDER_PREFIX):
        return Fitted(recipe, {}, is_other)
    outline = outline_dataset(recipe.data.name, data_dir, task=recipe.task.name)
    if outline.task != recipe.task.name:  # training refuses it
        return Fitted(recipe, {}, is_other)
    if outline.has_validation and "validation" in apply_overrides({}, overrides).get("data", {}):
        raise UserError(
            f"{recipe.data.name} has its own validation images, so that data.validation, a share of the "
            "training images, has no meaning; leave it out, or move those images to train"
        )
    stated = apply_overrides({} if is_other else with_changes(own, {}), overrides)
    if recipe.data.name.startswith(FOLDER_PREFIX):
        outline = outline._replace(channels=max(outline.channels, _channels_of_start(recipe, find_start)))
    chosen = _choose(recipe, outline, stated, devices)
    return Fitted(build(with_changes(values, chosen)), chosen, is_other)


def _choose(recipe: Recipe, outline: Outline, stated: Plain, devices: int) -> dict[str, int | float]:
    config, model = recipe.sketch().config, stated.get("model", {})
    fitting = {"num_classes": outline.num_classes, "in_channels": outline.channels}
    chosen: dict[str, int | float] = {
        f"model.{key}": value
        for key, value in fitting.items()
        if key in config.__dataclass_fields__ and key not in model and getattr(config, key) != value
    }
    images, batch = _training_images(recipe, outline), recipe.batch_size
    if "batch_size" not in stated:
        batch = _fitting_batch(recipe, images, devices)
        chosen |= {} if batch == recipe.batch_size else {"batch_size": batch}
    longest = 1 - 1 / max(_AVERAGED_EPOCHS * (images // batch), 1)
    if "average" not in stated.get("optim", {}) and recipe.optim.average > longest:
        chosen["optim.average"] = round(longest, 4)
    return chosen


def _channels_of_start(recipe: Recipe, find_start: Callable[[str], Path]) -> int:
    before = read_recipe(find_start(recipe.start_from)) if recipe.start_from else None
    return 0 if before is None else before.sketch().image_shape[0]


def _training_images(recipe: Recipe, outline: Outline) -> int:
    images = min(outline.num_train, recipe.data.limit or outline.num_train)
    return images if outline.has_validation else images - round(images * recipe.data.validation)


def _fitting_batch(recipe: Recipe, images: int, devices: int) -> int:
    share, least = devices, 1
    if recipe.task.name == "retrieval":  # whole places, and two of them to tell apart
        share, least = recipe.data.images_per_place, 2
    shares, rest = divmod(recipe.batch_size, share)
    while not rest and images // (shares * share) < _LEAST_STEPS and shares // 2 >= least:
        shares //= 2
    return shares * share + rest


def name_dataset(text: str) -> str:
    """The name of a dataset; the path of a folder, with or without a size, becomes `folder:PATH`."""
    if text.startswith(FOLDER_PREFIX) or text in DATASETS:
        return text
    if not os.path.isdir(folder_path(text)):
        advice = "give the path of a folder, or a name that `torchcaps list datasets` shows"
        raise unknown_name("dataset or folder", text, DATASETS.names(), advice)
    return f"{FOLDER_PREFIX}{text}"


def run_name(name: str, fitted: Fitted) -> str:
    """The name of a run: the data and the recipe; a packaged recipe with its own data gives its own."""
    if name in packaged_recipes() and not fitted.has_other_data:
        return name.replace("/", "-")
    data = fitted.recipe.data.name
    if data.startswith(FOLDER_PREFIX):
        data = folder_path(data.removeprefix(FOLDER_PREFIX)).resolve().name
    return f"{data}-{Path(name).stem}"
