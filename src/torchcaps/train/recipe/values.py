"""The keys that a recipe states, as plain data: read from YAML, and changed by name."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from shlex import quote

from torchcaps.core import MissingDataError, Plain, UserError, shown, unknown_name
from torchcaps.storage import read_text

from .yaml_file import parse_yaml


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


def read_values(name: str | Path) -> Plain:
    """The keys that a recipe states, at a path or of a packaged name."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise MissingDataError(f"no recipe at {path}")
        return _keys(read_text(path), str(name))
    if str(name) not in packaged_recipes():
        advice = "`torchcaps list recipes` shows the names, and a file must end in .yaml"
        if path.is_dir():
            advice = (
                f"for a folder of images: torchcaps train photos/efficient_capsnet --data {quote(str(name))}"
            )
        raise unknown_name("recipe", str(name), packaged_recipes(), advice)
    return copy.deepcopy(_packaged_keys(str(name)))


@cache  # experiments read the same few files thousands of times
def _packaged_keys(name: str) -> Plain:
    return _keys((files("torchcaps") / "recipes" / f"{name}.yaml").read_text(encoding="utf-8"), name)


def _keys(text: str, name: str) -> Plain:
    values = parse_yaml(text, name)
    if not isinstance(values, dict):
        raise UserError(
            f"{name} should hold the keys of a recipe, such as model and data; it has {shown(values)}"
        )
    return values


def apply_overrides(values: Plain, overrides: Iterable[str]) -> Plain:
    """The nested mapping with each `a.b=value` put in its place; values are read as YAML."""
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not key:
            raise UserError(f"--set takes key=value, got {override!r}")
        _put(values, key, parse_yaml(text, f"--set {key}"), f"--set {override}")
    return values


def with_changes(values: Mapping[str, object], changes: Mapping[str, object]) -> Plain:
    """The nested mapping with each value of `changes` put in its place, which its key `a.b` names.

    Changes are made in their order. The values given are left as they are.
    """
    changed = copy.deepcopy(dict(values))
    for key, value in changes.items():
        _put(changed, key, copy.deepcopy(value), f"cannot change {key}")
    return changed


def _put(values: Plain, key: str, value: object, words: str) -> None:
    """Put a value in the place of a nested mapping that its key `a.b` names; `words` begin an error."""
    *parents, last = key.split(".")
    for parent in parents:
        values = values.setdefault(parent, {})
        if not isinstance(values, dict):
            both = (
                f"; to set both: routing={{name: {values}, {last}: {value}}}" if parent == "routing" else ""
            )
            raise UserError(f"{words}: {parent} is a single value, not a group of keys{both}")
    values[last] = value
