"""A localized flight is drawn where it was."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from viz.drawing import assert_draws, legend_of

from torchcaps.viz.flight import _STRIP as STRIP
from torchcaps.viz.flight import (
    FlightDrawing,
    draw_belief,
    draw_errors,
    flight_page,
    round_length,
    smaller_belief,
)
from torchcaps.viz.markup import read_template
from torchcaps.viz.style import MUTED, WARM

EMPTY = FlightDrawing("x", None, np.zeros((1, 2)), [None], [1.0], [None], [""], {}, (2000.0, 1000.0), [True])

HALVES = (np.linspace(0.15, 0.45, 90), np.linspace(0.55, 0.85, 90))


def pixels_of(figure):
    """The map of a drawing in [0, 1], and the pixel at shares of its width and height."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[:-STRIP, :, :3] / 255
    return pixels, lambda x, y: pixels[int(y * len(pixels)), int(x * pixels.shape[1])]


@pytest.mark.parametrize("shape", [(600, 61), (61, 600), (121, 21), (120, 7), (241, 241)])
def test_a_smaller_belief_is_where_the_belief_was(shape):
    for axis, cells in enumerate(shape):
        for cell in range(cells):
            belief = np.zeros(shape)
            belief[(cell, 0) if axis == 0 else (0, cell)] = 1.0
            found = smaller_belief(belief)
            assert found.max() == 1.0  # a narrow peak stays
            assert max(found.shape) <= 120
            block = int(np.argwhere(found == 1.0)[0][axis])
            size = cells / found.shape[axis]
            assert block * size - 1 < cell < (block + 1) * size  # off by less than a cell


def test_the_truth_is_seen_where_there_is_no_picture_of_the_map():
    assert np.abs(EMPTY.ground - np.array(to_rgb("white"))).max(-1).min() > 0.4


def test_the_last_belief_is_drawn_north_up_over_a_map_in_its_own_proportions():
    first, last = np.zeros((4, 8)), np.zeros((4, 8))
    first[3, 6], last[0, 1], last[0, 2] = 1.0, 0.2, 0.05
    pixels, at = pixels_of(draw_belief(replace(EMPTY, beliefs={2: first, 11: last})))
    assert pixels.shape[1] == 2 * pixels.shape[0]
    ground = np.array(to_rgb(MUTED))
    assert at(1.5 / 8, 0.5 / 4) == pytest.approx(0.85 * np.array(to_rgb("#ffd166")) + 0.15 * ground, abs=0.01)
    weaker = np.abs(at(2.5 / 8, 0.5 / 4) - ground).max()
    assert 0.05 < weaker < np.abs(at(1.5 / 8, 0.5 / 4) - ground).max()  # a quarter of the peak is seen
    for column, row in ((1.5, 3.5), (6.5, 3.5), (6.5, 0.5)):
        assert at(column / 8, row / 4) == pytest.approx(ground, abs=0.01)


def test_the_estimated_and_the_true_trajectory_run_where_they_were():
    estimates = np.array([[0.1, 0.2], [0.9, 0.2]])
    truth = [(0.1, 0.6), None, (0.9, 0.6)]
    _, at = pixels_of(draw_belief(replace(EMPTY, estimates=estimates, truth=truth, converged=[True, True])))
    across = np.linspace(0.15, 0.85, 200)
    assert at(0.5, 0.2) == pytest.approx(np.array(to_rgb(WARM)), abs=0.02)
    assert max(at(x, 0.6).min() for x in across) > 0.95  # white dashes
    assert all(
        at(x, y) == pytest.approx(np.array(to_rgb(MUTED)), abs=0.01) for x in across for y in (0.8, 0.4)
    )


def test_estimates_of_a_belief_that_has_not_converged_are_dotted():
    estimates = np.array([[0.1, 0.2], [0.5, 0.2], [0.9, 0.2]])
    drawing = replace(EMPTY, estimates=estimates, truth=[None] * 3, converged=[False, False, True])
    _, at = pixels_of(draw_belief(drawing))
    is_warm = [[np.abs(at(x, 0.2) - to_rgb(WARM)).max() < 0.02 for x in part] for part in HALVES]
    assert not all(is_warm[0])
    assert any(is_warm[0])
    assert all(is_warm[1])


def test_a_map_names_its_lines_and_has_a_scale_in_metres():
    figure = draw_belief(EMPTY)
    assert legend_of(figure) == ["estimate", "estimate before the belief has converged", "last belief"]
    scale = figure.axes[1]
    bar = scale.lines[0].get_xdata()
    assert [text.get_text() for text in scale.texts] == ["200 m, north is up"]
    assert (bar[1] - bar[0]) / np.ptp(scale.get_xlim()) == pytest.approx(200 / 2000)


@pytest.mark.parametrize("unknown", [None, np.eye(2, dtype=bool)])
def test_the_scale_of_a_map_stands_apart_from_the_names_of_its_lines(unknown):
    drawing = replace(EMPTY, truth=[(0.5, 0.5)], unknown=unknown, metres=(3000.0, 2000.0))
    assert_draws(draw_belief(drawing))


@pytest.mark.parametrize(("metres", "length"), [(1.0, 1), (9.9, 5), (333.3, 200), (0.25, 0.2)])
def test_a_scale_has_a_round_length(metres, length):
    assert round_length(metres) == pytest.approx(length)


def test_the_page_knows_which_estimates_have_converged():
    page = flight_page(replace(EMPTY, converged=[False]), {})
    assert '"converged":[false]' in page.replace(" ", "")
    assert "the map is 2,000 m wide" in page


def test_errors_and_spreads_are_drawn_over_the_updates_counted_from_one():
    (axes,) = draw_errors(replace(EMPTY, sigmas=[90.0, 30.0, 9.0], errors=[200.0, None, 5.0])).axes
    spread, error = (line.get_xydata() for line in axes.lines)
    assert spread.tolist() == [[1, 90], [2, 30], [3, 9]]
    assert error[[0, 2]].tolist() == [[1, 200], [3, 5]]
    assert np.isnan(error[1, 1])
    assert len(draw_errors(EMPTY).axes[0].lines) == 1  # the truth is not known


def test_without_scripts_the_page_says_that_it_needs_them():
    assert "<noscript><p>The flight is shown with JavaScript" in read_template("flight.html")


def test_ground_that_is_unknown_is_striped_and_named():
    unknown = np.zeros((4, 8), bool)
    unknown[0, 6:] = True
    drawing = replace(EMPTY, unknown=unknown)
    height, width = drawing.ground.shape[:2]
    plain, changed = EMPTY.ground, (drawing.ground != EMPTY.ground).any(-1)
    assert plain.shape == drawing.ground.shape
    assert changed[: height // 4, 3 * width // 4 :].all()
    assert changed.sum() == height * width // 16
    assert "no data" in legend_of(draw_belief(drawing))
    assert "Striped ground is without data" in flight_page(drawing, {})
    assert "Striped" not in flight_page(EMPTY, {})
