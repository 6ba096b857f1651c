"""Checks that every drawing passes."""

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image


def assert_draws(figure, least=3000):
    """At least so many pixels are not paper, in more than twenty colours."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3]
    assert (pixels != pixels[0, 0]).any(-1).sum() > least
    assert len(Image.fromarray(pixels).getcolors(1 << 24)) > 20
    assert_texts_apart(figure)


def assert_texts_apart(figure):
    """No text covers another, and none leaves the figure."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts_of(figure)]
    width, height = figure.canvas.get_width_height()
    for number, (words, box) in enumerate(boxes):
        assert box.x0 >= -1, words
        assert box.y0 >= -1, words
        assert box.x1 <= width + 1, words
        assert box.y1 <= height + 1, words
        for other, second in boxes[:number]:
            assert not box.padded(-1).overlaps(second.padded(-1)), (words, other)


def texts_of(figure):
    """All that is drawn; ticks outside the limits are not, and leaning names overlap only in their boxes."""
    texts = [*figure.texts, *(text for legend in figure.legends for text in legend.get_texts())]
    for axes in figure.axes:
        texts += [*axes.texts, axes.title]
        if axes.axison:
            texts += [*(axes.get_legend().get_texts() if axes.get_legend() else [])]
            texts += [axes.xaxis.label, axes.yaxis.label]
            texts += tick_labels(axes.xaxis, axes.get_xlim()) + tick_labels(axes.yaxis, axes.get_ylim())
    return [text for text in texts if text.get_text() and not text.get_rotation()]


def legend_of(figure):
    """The names in the one legend of a figure."""
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def tick_labels(axis, limits):
    low, high = sorted(limits)
    shown = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [label for tick in shown for label in (tick.label1, tick.label2) if label.get_visible()]
