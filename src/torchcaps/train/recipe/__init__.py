"""Recipes: everything a run needs, as typed data; read from YAML, explained, and fitted to data."""

from .fitted import Fitted, name_dataset, recipe_for_data, run_name
from .keys import annotated_recipe
from .load import load_recipe, read_recipe, stored_recipe
from .memory import require_memory, require_memory_to_train
from .recipe import Data, Recipe, build, recipe_as_json, recipe_as_yaml
from .values import packaged_recipes
from .yaml_file import read_yaml

__all__ = [
    "Data",
    "Fitted",
    "Recipe",
    "annotated_recipe",
    "build",
    "load_recipe",
    "name_dataset",
    "packaged_recipes",
    "read_recipe",
    "read_yaml",
    "recipe_as_json",
    "recipe_as_yaml",
    "recipe_for_data",
    "require_memory",
    "require_memory_to_train",
    "run_name",
    "stored_recipe",
]
