"""YAML as people write it: read as plain data, with every mistake named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from torchcaps.core import MissingDataError, UserError, shown
from torchcaps.storage import read_text

_MOST_VALUES = 10_000  # of a file, with what aliases repeat
_LONGEST_PROBLEM = 300  # characters


def read_yaml(path: Path) -> object:
    """The plain data in a YAML file that is no recipe, read as carefully."""
    if not path.is_file():
        raise MissingDataError(f"no file at {path}")
    return parse_yaml(read_text(path), str(path))


class _Loader(yaml.SafeLoader):
    """Plain YAML in which no key stands twice, and merged keys do not grow without end."""

    _merged = 0  # keys of all mappings so far, with those that `<<` takes over from others

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """A mapping; of a key that stands twice, YAML would silently drop the first value."""
        seen = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                problem = f"the key {shown(key.value)} stands twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)

    def flatten_mapping(self, node: Any) -> None:
        """Take over what `<<` names; a few lines of it can name more keys than memory holds."""
        super().flatten_mapping(node)
        self._merged += len(node.value)
        if self._merged > _MOST_VALUES:
            problem = f"it has more than {_MOST_VALUES:,} keys, with those that << repeats"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def parse_yaml(text: str, name: str) -> object:
    """The plain data in a text; `name` says where it stands."""
    try:
        values = yaml.load(text, _Loader)
    # also text that looks like a date or a number and is none
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError) as error:
        problem = " ".join(str(error).split())
        raise UserError(f"{name} is not valid YAML: {problem[:_LONGEST_PROBLEM]}") from error
    _check_amount(values, name)
    return values


def _check_amount(values: object, name: str) -> None:
    """Raise where aliases of YAML make a short text an endless recipe."""
    seen, waiting = 0, [values]
    while waiting:
        value = waiting.pop()
        seen += 1
        if isinstance(value, dict | list):
            waiting += value.values() if isinstance(value, dict) else value
        if seen + len(waiting) > _MOST_VALUES:
            raise UserError(f"{name} has more than {_MOST_VALUES:,} values; such files need far fewer")


def as_yaml(values: object) -> str:
    """Plain data as text, with keys in their order."""
    return yaml.safe_dump(values, sort_keys=False)
