"""The legend below a tree."""

from __future__ import annotations

from torchcaps.core import Number
from torchcaps.parse import ParseTree

from ..style import PAPER, WARM
from ..text import format_share
from .scene import MARGIN, Scene, Shape, Words, activation_colour, circle, coupling_stroke, edge_strength

_SIZE, _LETTER, _GAP, _LINE = 10.7, 6.1, 26, 20
OUTSIDE = "#c3c9df"  # a capsule that is not in the tree, or none of whose lines are drawn


class Legend:
    """Entries one after the other, on as many lines as they need."""

    def __init__(self, scene: Scene, top: Number) -> None:
        self.scene = scene
        self.x: Number = MARGIN
        self.y = top

    @property
    def bottom(self) -> Number:
        """Where the next part of the drawing may start."""
        return self.y + _LINE / 2

    def _entry(self, mark: Number, words: str) -> tuple[Number, Number]:
        """Write words after a mark of that width, which starts at the place returned."""
        width = mark + 8 + _LETTER * len(words)
        if self.x > MARGIN and self.x + width > self.scene.width - 14:
            self.x, self.y = MARGIN, self.y + _LINE
        start = self.x
        self.scene.words.append(Words((start + mark + 8, self.y), words, size=_SIZE))
        self.x += width + _GAP
        return start, self.y

    def note(self, words: str) -> None:
        """Words without a mark."""
        self._entry(-8, words)

    def activations(self) -> None:
        """The colours of capsules."""
        x, y = self._entry(60, "activation 0 to 1")
        for step in range(20):
            box = (x + 3 * step, y - 5, 3.4, 10)
            self.scene.shapes.append(Shape("legend", box, 0, fill=activation_colour(step / 19)))

    def couplings(self, tree: ParseTree, *, has_others: bool = False) -> None:
        """Strokes from an even share upwards, to the chosen class and to others where those are drawn."""
        parents = tree.layer_sizes[-1]
        shown = [value for value in (0.3, 0.6, 1.0) if value > 1.5 / parents]
        least = _name_least(tree)
        x, y = self._entry(24 * len(shown) + 16, f"coupling {', '.join([least, *map('{:g}'.format, shown)])}")
        for number, value in enumerate([1 / parents, *shown]):
            ends = (x + 24 * number, y), (x + 24 * number + 16, y)
            self.scene.strokes.append(coupling_stroke(*ends, edge_strength(value, parents)))
        if has_others:
            x, y = self._entry(16, "to others")
            self.scene.strokes.append(coupling_stroke((x, y), (x + 16, y), 0.4, is_chosen=False))

    def dots(self, *, has_field: bool) -> None:
        """The dots on the image, and the frame around what the strongest capsule sees."""
        x, y = self._entry(12, "activation times coupling")
        self.scene.shapes.append(circle("legend", (x + 6, y), 12, fill=WARM, keys=())._replace(edge=PAPER))
        if has_field:
            x, y = self._entry(12, "seen by the strongest")
            frame = Shape("legend", (x, y - 6, 12, 12), 2, edge=WARM, edge_width=1.4, is_dashed=True)
            self.scene.shapes.append(frame)

    def outside(self, *, is_cut: bool) -> None:
        """Capsules that are not in the tree; where it was cut, some are and only their lines are missing."""
        x, y = self._entry(4, "not in the tree, or not drawn" if is_cut else "not in the tree")
        self.scene.shapes.append(circle("legend", (x + 2, y), 3.5, fill=OUTSIDE, keys=()))


def _name_least(tree: ParseTree) -> str:
    """The weakest coupling that is drawn, 1 / parents: an even share only where couplings are a split."""
    if len(tree.layer_sizes) > 2:
        return "even" if tree.is_split else "1 / parents"
    share = format_share(1 / tree.layer_sizes[-1])
    return f"{share} (even)" if tree.is_split else share
