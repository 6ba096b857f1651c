"""Recipes by name or path, and those that runs wrote down."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from pathlib import Path

from torchcaps.core import UserError
from torchcaps.data import FOLDER_PREFIX
from torchcaps.storage import read_mapping

from .recipe import Recipe, build
from .values import apply_overrides, read_values, with_changes


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


def stored_recipe(values: object, where: str = "recipe") -> Recipe:
    """The recipe that a run wrote down, read with the keys of today.

    Many runs behind our results were made before 0.1.0: every loss was stored with the settings of the margin
    loss, folders of images were stretched, and pruning began at a `min_accuracy`.
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
