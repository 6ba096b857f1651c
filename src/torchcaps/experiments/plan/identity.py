"""With what runs were made: results of one row have the same recipe, and data of the same protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from torchcaps.core import UserError
from torchcaps.data import data_protocol
from torchcaps.train import recipe_as_json, stored_recipe

from .experiment import PlannedRun


def made_with(recipe: Mapping[str, Any], protocol: int) -> str:
    """What the recipe of a result and the protocol of its data say, but for the seed.

    Keys that were added later have their defaults; one that was removed makes the recipe unlike all others.
    """
    try:
        return _write(recipe_as_json(stored_recipe(recipe)), protocol)
    except UserError:
        return _write(recipe, protocol)


def planned_with(run: PlannedRun) -> str:
    """What `made_with` gives for a run that is made now."""
    return _write(recipe_as_json(run.recipe), data_protocol(run.recipe.data.name))


def _write(recipe: Mapping[str, Any], protocol: int) -> str:
    shared = {key: value for key, value in recipe.items() if key != "seed"}
    return json.dumps([shared, protocol], sort_keys=True)
