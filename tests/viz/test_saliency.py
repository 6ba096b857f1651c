import numpy as np
import pytest

from torchcaps.core import UserError
from torchcaps.viz import SaliencyPanel, draw_saliency, to_png


def test_every_image_has_a_map_for_each_network():
    maps = {"without": np.ones((2, 8, 8)), "with": np.zeros((2, 8, 8))}
    grey, colour = np.zeros((2, 1, 8, 8)), np.zeros((2, 3, 8, 8))
    figure = draw_saliency({"grey": SaliencyPanel(grey, maps), "colour": SaliencyPanel(colour, maps)})
    assert len(figure.axes) == 2 * 2 * 3
    assert {text.get_text() for text in figure.texts} == {"grey", "colour", "image", "without", "with"}
    assert to_png(figure)[1:4] == b"PNG"


def test_every_map_lies_over_its_own_image():
    maps = np.zeros((2, 8, 8))
    maps[0, 1, 2], maps[1, 6, 5] = 1.0, 1.0
    figure = draw_saliency({"x": SaliencyPanel(np.zeros((2, 1, 8, 8)), {"net": maps})})
    drawn = [axes.images[1].get_array()[..., 3] for axes in figure.axes if len(axes.images) == 2]
    assert [np.argwhere(alpha > 0).tolist() for alpha in drawn] == [[[1, 2]], [[6, 5]]]


def test_a_row_says_what_its_images_are():
    images = np.zeros((2, 1, 8, 8))
    figure = draw_saliency({"x": SaliencyPanel(images, {}), "y": SaliencyPanel(images, {}, "drawing")})
    assert [text.get_text() for text in figure.texts] == ["x", "image", "y", "drawing"]


def test_maps_of_another_size_are_refused():
    with pytest.raises(UserError, match=r"with: 2 images of .8, 8. need maps of that size"):
        draw_saliency({"x": SaliencyPanel(np.zeros((2, 8, 8)), {"with": np.zeros((2, 4, 4))})})
    with pytest.raises(UserError, match="no images"):
        draw_saliency({})
