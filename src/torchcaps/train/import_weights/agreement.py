"""Whether converted weights have the names and shapes of the network they are for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torch import Tensor

from torchcaps.core import UserError

StateDict = dict[str, Tensor]


def require_shape(name: str, values: Tensor, expected: Mapping[str, Tensor], source: str) -> None:
    """Raise where `source` gives the tensor `name` another shape than the network has."""
    if name in expected and values.shape != expected[name].shape:
        raise UserError(
            f"{source} gives {name} the shape {tuple(values.shape)}, the network has "
            f"{tuple(expected[name].shape)}: are these the weights of this variant?"
        )


def require_same_names(found: Iterable[str], expected: Iterable[str]) -> None:
    """Raise where names are missing, or where there are too many."""
    missing, extra = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
    complaints = [
        f"{word} {', '.join(names)}" for word, names in (("lack", missing), ("add", extra)) if names
    ]
    if complaints:
        raise UserError(f"these weights {' and '.join(complaints)}")
