"""How well scores tell strange images from known ones, as bars."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from torchcaps.core.errors import UserError

from .style import COOL, INK, MUTED, SMALL, TEXT, TITLE, WARM, Number, axes_at, canvas, plain_chart

_COLOURS = (COOL, "#8793e6", WARM, "#f5ab7f", "#8d93b3")


def draw_auc(panels: Mapping[str, Mapping[str, Mapping[str, Number]]]) -> Figure:
    """A chart for each panel: areas under the ROC in groups, one bar for each score; a line marks chance.

    Args:
        panels: Areas by title of the chart, by score, and by kind of strange image.
    """
    scores = list(dict.fromkeys(score for of_panel in panels.values() for score in of_panel))
    if not scores or len(scores) > len(_COLOURS):
        raise UserError(f"there is room for 1 to {len(_COLOURS)} scores, got {len(scores)}")
    width = 0.85 / len(scores)
    figure = canvas(900, 20 + 260 * len(panels))
    for position, (title, of_panel) in enumerate(panels.items()):
        axes = axes_at(figure, (56, 60 + 260 * position, 820, 160))
        plain_chart(axes)
        axes.set_title(title, loc="left", fontsize=TITLE, color=INK, pad=10)
        axes.set_ylabel("AUC", fontsize=TEXT, color=MUTED)
        kinds = list(dict.fromkeys(kind for areas in of_panel.values() for kind in areas))
        for number, score in enumerate(scores):
            areas = of_panel.get(score, {})
            places = [kinds.index(kind) + (number - (len(scores) - 1) / 2) * width for kind in areas]
            axes.bar(places, list(areas.values()), 0.9 * width, color=_COLOURS[number], label=score)
        axes.axhline(0.5, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        axes.set_ylim(0, 1)
        axes.set_xticks(range(len(kinds)), kinds)
        if not position:
            axes.legend(
                frameon=False,
                fontsize=SMALL,
                labelcolor=INK,
                loc="lower right",
                bbox_to_anchor=(1.01, 1.01),
                ncols=len(scores),
                columnspacing=1.0,
            )
    return figure
