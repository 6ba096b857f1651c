"""The paper between strokes is that of the page without them, in any light."""

import numpy as np
import pytest
from PIL import Image
from zoo.handwriting import written

from torchcaps.zoo import prepare_digit
from torchcaps.zoo.photo.ink import _best_size
from torchcaps.zoo.photo.paper import paper_between

SIZE, BOX = (640, 480), (280, 180, 80, 120)
ROWS, COLUMNS = np.indices(SIZE[::-1])
LIGHT = {
    "even": np.ones(SIZE[::-1]),
    "window": 0.5 + COLUMNS / 1280,
    "lamp": 1 / (1 + 2 * ((COLUMNS / 640 - 0.5) ** 2 + (ROWS / 480 - 0.4) ** 2)),
    "shadow": np.where(COLUMNS + 0.4 * ROWS < 400, 0.5, 1),
}


@pytest.mark.parametrize("light", LIGHT)
@pytest.mark.parametrize(("paper", "ink"), [(220, 50), (60, 210)])
def test_ink_changes_the_paper_little_also_at_the_edges_of_the_page(light, paper, ink):
    page = paper * LIGHT[light]
    lit = Image.fromarray(
        ((paper + (ink - paper) * written("5", SIZE, BOX, pen=9)) * LIGHT[light]).astype("u1")
    )
    found = paper_between(lit, -1 if ink < paper else 1, 1)
    share = np.abs(found - page) / page
    assert np.quantile(share, 0.98) < 0.1
    assert share[[0, -1]].mean() < 0.05


def test_chalk_is_as_strong_in_a_shadow_as_in_the_light():
    board = 70 + 140 * written("2", SIZE, (200, 80, 240, 320), pen=30)
    even, shaded = (
        np.asarray(prepare_digit(Image.fromarray((board * LIGHT[light]).astype("u1"))).picture, float)
        for light in ("even", "shadow")
    )
    assert np.abs(even - shaded).mean() < 20


def test_a_hairline_is_looked_for_in_all_pixels_of_a_picture_between_two_working_sizes():
    ink = np.zeros((600, 800))
    ink[200:300, 400] = 0.5
    assert _best_size(ink) == 800


@pytest.mark.parametrize(
    ("paper", "ink", "words"),
    [(220, 30, "(dark on bright)"), (220, 150, "(dark on bright)"), (60, 210, "(bright on dark)")],
)
@pytest.mark.parametrize("corner", [90, 150, 220, 300])
def test_a_corner_beside_a_shadow_is_no_ink(corner, paper, ink, words):
    """Most of the page is in shadow, and the light of a corner is far from its usual tone."""
    from_corner = 640 - COLUMNS + 1.2 * ROWS
    light = np.where(from_corner < corner, 1.0, 0.5)
    page = (paper + (ink - paper) * written("2", SIZE, BOX, pen=5)) * light
    assert words in prepare_digit(Image.fromarray(page.astype("u1"))).words
