"""The arrangement of a tree: columns for one routed layer, rows for several."""

from __future__ import annotations

from torchcaps.parse import ParseTree, ReceptiveField

from .columns import arrange_columns
from .rows import arrange_rows
from .scene import Scene


def arrange(
    tree: ParseTree,
    shape: tuple[int, ...],
    names: list[str],
    *,
    field: ReceptiveField | None = None,
    label: int | None = None,
) -> Scene:
    """All that is drawn of a tree beside an image of `shape` (height, width, ...)."""
    arranged = arrange_columns if len(tree.layer_sizes) == 2 else arrange_rows
    return arranged(tree, shape, names, field=field, label=label)
