"""Every drawing renders; `pytest` turns any warning into a failure."""

from base64 import b64decode
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb
from PIL import Image
from viz.drawing import assert_draws

import torchcaps.viz
from torchcaps.core import UserError
from torchcaps.layers import map_sizes
from torchcaps.parse import place_map, receptive_field, saliency_map
from torchcaps.viz import (
    draw_confusion,
    draw_curves,
    draw_evidence,
    draw_pairs,
    draw_perturbations,
    draw_reconstructions,
    draw_side_by_side,
    to_png,
)
from torchcaps.viz.evidence import heat_colours, stretch_heat
from torchcaps.viz.pictures import fit, place_picture, soften, to_data_uri, to_pictures
from torchcaps.viz.style import TILE, WARM, canvas, drawing_board

NAMES = ["airplane", "automobile", "bird", "a class whose name never ends"]
OFFSETS = [-0.25, 0.0, 0.25]


EPOCHS = [{"epoch": e, "train_loss": 1 / (e + 1), "val_accuracy": 0.9} for e in range(4)]


@pytest.mark.parametrize("names", [None, NAMES])
def test_confusion(names):
    counts = torch.tensor([[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1]])
    assert_draws(draw_confusion(counts, names))


@pytest.mark.parametrize("classes", [1, 32])
def test_confusion_of_any_number_of_classes(classes):
    assert_draws(draw_confusion(np.eye(classes)), least=1000)


def test_a_class_that_never_occurs_has_no_share():
    figure = draw_confusion(np.array([[3, 1], [0, 0]]))
    assert "none" in [text.get_text() for text in figure.axes[0].texts]
    assert_draws(figure)


def test_counts_stand_in_the_row_of_their_true_class_with_the_share_of_it_that_was_found():
    (axes,) = (figure := draw_confusion(np.array([[6, 2], [1, 4]]))).axes
    counts = {text.get_position(): text.get_text() for text in axes.texts if text.get_text().isdigit()}
    assert counts == {(0, 0): "6", (1, 0): "2", (0, 1): "1", (1, 1): "4"}  # column, row
    assert [text.get_text() for text in axes.texts if "%" in text.get_text()] == ["75.0%", "80.0%"]
    assert figure.texts[0].get_text() == "3 of 13 wrong"


def test_mistakes_are_red_the_more_the_more_frequent_and_hits_blue():
    image = draw_confusion(np.array([[9, 4, 0], [1, 5, 1], [0, 0, 2]])).axes[0].images[0].get_array()
    redness = image[..., 0] - image[..., 2]
    assert (np.diag(redness) < -0.1).all()
    assert redness[0, 1] > redness[1, 0] == redness[1, 2] > 0
    empty = image[[0, 2, 2], [2, 0, 1]]
    np.testing.assert_allclose(empty, [to_rgb(TILE)] * 3)
    share = np.linalg.norm(np.diagonal(image).T - to_rgb(TILE), axis=1)  # 9 of 13, 5 of 7, 2 of 2
    assert share[0] < share[1] < share[2]


def test_wrong_predictions_alone_are_named_with_the_true_class_and_framed():
    above, below = np.zeros((3, 3, 4, 4)), np.ones((3, 3, 4, 4))
    figure = draw_reconstructions(
        above, below, np.array([0, 1, 2]), np.array([0, 2, 2]), class_names=["a", "b", "c"]
    )
    (board,) = figure.axes
    words = [text.get_text() for text in board.texts]
    assert words[2:] == ["a", "c", "not b", "c"]
    assert len(board.patches) == 1
    tops = {float(image.get_array().mean()): image.get_extent()[3] for image in board.images}
    assert tops[0.0] < tops[1.0]  # y runs downwards: inputs stand above


@pytest.mark.parametrize(("channels", "names"), [(1, None), (2, NAMES), (3, NAMES)])
def test_reconstructions(channels, names):
    images = torch.randn(4, channels, 12, 12)
    labels, guesses = torch.tensor([0, 1, 2, 3]), torch.tensor([0, 2, 2, 1])
    assert_draws(draw_reconstructions(images, images.sigmoid(), labels, guesses, class_names=names))


def test_any_name_of_a_class_can_be_drawn():
    names = [r"$\frac{a$", "\u732b\U0001f436"]
    images, classes = torch.rand(2, 1, 8, 8), torch.tensor([0, 1])
    assert_draws(draw_confusion(np.eye(2), names), least=1000)
    assert_draws(draw_reconstructions(images, images, classes, classes.flip(0), class_names=names))
    for count in (1, 2):
        heat = torch.rand(count, 8, 8)
        assert_draws(draw_evidence(images[:count], heat, torch.rand(count, 2), class_names=names))


def test_reconstructions_take_bytes_and_images_without_channels():
    images = np.random.default_rng(0).integers(0, 256, (12, 9, 9), dtype=np.uint8)
    assert_draws(draw_reconstructions(images, images / 255, np.zeros(12), np.ones(12)))


def test_reconstructions_need_a_name_for_each_class_they_show():
    images = torch.rand(2, 1, 8, 8)
    with pytest.raises(UserError, match="3 names, got 2"):
        draw_reconstructions(
            images, images, torch.tensor([0, 1]), torch.tensor([0, 2]), class_names=["a", "b"]
        )


def test_as_many_labels_as_images():
    images = torch.rand(2, 1, 8, 8)
    with pytest.raises(UserError, match="2 images"):
        draw_reconstructions(images, images, torch.tensor([0]), torch.tensor([0, 1]))


def test_pairs_have_a_caption_each():
    above, titles = torch.rand(3, 3, 8, 8), ("seen", "drawn")
    figure = draw_pairs(above, above.flip(0), titles=titles, captions=["1.0°", "2.0°", "3.0°"])
    assert {"seen", "drawn", "1.0°", "3.0°"} <= {text.get_text() for text in figure.axes[0].texts}
    assert_draws(figure)
    with pytest.raises(UserError, match="3 pictures"):
        draw_pairs(above, above, titles=titles, captions=["1.0°"])


def test_pictures_side_by_side_have_a_title_and_their_own_lines_each():
    pictures, titles = torch.rand(2, 3, 8, 8), ["image", "estimated"]
    captions = [["a $ name " * 9], ["Euler angles -179.9°, -89.9°, -179.9°"]]
    figure = draw_side_by_side(pictures, titles=titles, captions=captions)
    (board,) = figure.axes
    told = [text.get_text() for text in board.texts]
    assert told[0] == "image"
    assert told[1].endswith("…")
    assert told[2:] == ["estimated", "Euler angles -179.9°, -89.9°, -179.9°"]
    assert_draws(figure)
    with pytest.raises(UserError, match="2 pictures need as many titles"):
        draw_side_by_side(pictures, titles=titles, captions=[[]])


@pytest.mark.parametrize("shape", [(5, 3, 8, 8), (5, 3, 1, 8, 8), (2, 3, 3, 8, 8)])
def test_perturbations(shape):
    assert_draws(draw_perturbations(torch.rand(shape), OFFSETS))


def test_the_dimensions_that_change_the_picture_most_are_drawn_first():
    images = torch.full((5, len(OFFSETS), 8, 8), 0.5)
    images[3] += 0.4 * torch.tensor(OFFSETS)[:, None, None]
    images[1] += 0.2 * torch.tensor(OFFSETS)[:, None, None]
    (board,) = [axes for axes in draw_perturbations(images, OFFSETS, most=2).axes if axes.texts]
    assert [text.get_text() for text in board.texts if "dim" in text.get_text()] == ["dim 4", "dim 2"]


def test_offsets_stand_above_their_pictures():
    images = torch.tensor([0.1, 0.5, 0.9])[None, :, None, None, None].expand(1, 3, 3, 8, 8)
    (board,) = draw_perturbations(images, OFFSETS).axes
    words = {text.get_text(): text.get_position()[0] for text in board.texts}
    for word, picture, shade in zip(("-0.25", "0", "+0.25"), board.images, (0.1, 0.5, 0.9), strict=True):
        left, right, *_ = picture.get_extent()
        assert left < words[word] < right
        assert picture.get_array().mean() == pytest.approx(shade)


def test_a_column_for_each_offset():
    with pytest.raises(UserError, match="3 offsets"):
        draw_perturbations(torch.rand(5, 4, 8, 8), OFFSETS)


@pytest.mark.parametrize("names", [None, NAMES])
def test_evidence(forward_pass, names):
    config, images, output = forward_pass
    (trace,) = output.layers
    grid = (*map_sizes(config.image_size, config.stages)[-1], config.primary_types)
    chosen = output.activations.argmax(1)
    heat = saliency_map(trace.children.activations, trace.routed.coupling, chosen, grid)
    heat = place_map(heat, (20, 20), receptive_field(config.image_size, config.stages))
    labels = (chosen + torch.tensor([0, 1, 2])) % 4
    assert_draws(draw_evidence(images, heat, output.activations, labels=labels, class_names=names))


def test_no_evidence_at_all():
    assert_draws(draw_evidence(torch.zeros(2, 8, 8), torch.zeros(2, 8, 8), torch.zeros(2, 30)))


def test_contributions_get_a_row_of_their_own():
    images, heat, lengths = torch.rand(2, 8, 8), torch.rand(2, 8, 8), torch.rand(2, 3)
    figures = [draw_evidence(images, heat, lengths, contribution=more) for more in (None, heat)]
    assert [len(figure.axes) for figure in figures] == [6, 8]
    words = [{text.get_text() for text in figure.texts} for figure in figures]
    assert words[1] - words[0] == {"contribution"}
    assert_draws(figures[1])


@pytest.mark.parametrize("count", [1, 2, 5, 8])
@pytest.mark.parametrize("label", [0, 1])
def test_the_name_of_a_class_is_whole_where_there_is_room(count, label):
    images, heat, names = (
        torch.rand(count, 8, 8),
        torch.rand(count, 8, 8),
        ["heads of horses", "Mops und Co."],
    )
    lengths, labels = torch.tensor([[0.9, 0.4]] * count), torch.full((count,), label)
    figure = draw_evidence(images, heat, lengths, labels=labels, class_names=names)
    assert_draws(figure)
    titles = " ".join(axes.get_title() for axes in figure.axes)
    assert (names[0] in titles) == (count < 8)


@pytest.mark.parametrize(("columns", "classes"), [(2, 10), (2, 12), (8, 10), (8, 12)])
def test_names_stand_below_the_bars_where_each_has_its_place(columns, classes):
    images, lengths = torch.rand(columns, 8, 8), torch.rand(columns, classes)
    figure = draw_evidence(images, images, lengths)
    assert_draws(figure)
    is_named = any(text.get_text() == "7" for axes in figure.axes for text in axes.get_xticklabels())
    assert is_named == (columns == 2 or classes == 10)  # 10 and 11 are too wide for eight columns


def test_the_panels_of_one_image_stand_side_by_side_above_its_classes():
    lengths = torch.tensor([[0.2, 0.9, 0.4]])
    heat = torch.rand(1, 6, 18)
    figure = draw_evidence(
        torch.rand(1, 3, 6, 18),
        heat,
        lengths,
        contribution=heat,
        labels=torch.tensor([2]),
        class_names=NAMES[:3],
    )
    boxes = [axes.get_position() for axes in figure.axes]
    assert len(boxes) == 4
    *panels, classes = boxes
    assert all(left.x1 < right.x0 for left, right in pairwise(panels))
    assert all(classes.y1 < panel.y0 for panel in panels)
    bars = figure.axes[-1]
    assert [label.get_text() for label in bars.get_yticklabels()] == ["automobile", "bird", "airplane"]
    assert [text.get_text() for text in bars.texts] == ["0.900", "0.400", "0.200"]
    assert bars.get_title() == "automobile, not bird"
    assert {axes.get_aspect() for axes in figure.axes[:3]} == {1}  # pixels stay square
    assert_draws(figure)


@pytest.mark.parametrize("maps", [{}, {"contribution": torch.rand(2, 8, 8)}])
def test_a_map_of_another_size_is_refused(maps):
    with pytest.raises(UserError, match="upsample"):
        draw_evidence(torch.rand(2, 8, 8), torch.rand(2, 4, 4), torch.rand(2, 3), **maps)
    with pytest.raises(UserError, match="upsample"):
        draw_evidence(torch.rand(2, 8, 8), torch.rand(2, 8, 8), torch.rand(2, 3), contribution=torch.rand(8))


def test_a_map_runs_from_its_lowest_to_its_highest_value():
    heat = np.array([[0.100, 0.101], [0.102, 0.104]])
    np.testing.assert_allclose(stretch_heat(heat), [[0, 0.25], [0.5, 1]], atol=1e-9)
    np.testing.assert_allclose(stretch_heat(1000 * heat), stretch_heat(heat), atol=1e-9)


def test_a_map_covers_the_picture_the_more_the_higher_it_is():
    alpha = heat_colours(np.array([[0.0, 0.25], [0.5, 1.0]]))[..., 3]
    np.testing.assert_allclose(alpha, [[0, 0.9 / 8], [0.9 * 0.5**1.5, 0.9]])


def test_the_longest_capsule_of_each_image_has_the_warm_bar():
    lengths = torch.tensor([[0.2, 0.9, 0.4], [0.7, 0.1, 0.3]])
    figure = draw_evidence(torch.rand(2, 8, 8), torch.rand(2, 8, 8), lengths)
    bars = [axes.patches for axes in figure.axes if axes.patches]
    warm = [[patch.get_facecolor()[:3] == to_rgb(WARM) for patch in patches] for patches in bars]
    assert warm == [[False, True, False], [True, False, False]]


def test_pictures_lie_between_zero_and_one_whatever_they_came_as():
    ramp = np.arange(0, 205, 51)
    np.testing.assert_allclose(to_pictures(ramp.astype(np.uint8)[None, None])[0, 0], ramp / 255)
    dark = np.array([[[0.1, 0.2]]])
    assert np.array_equal(to_pictures(dark), dark)  # what fits is not stretched
    np.testing.assert_allclose(to_pictures(np.array([[[-1.0, 0.0, 1.2]]]))[0, 0], [0, 1 / 2.2, 1])
    np.testing.assert_allclose(to_pictures(np.array([[[0.0, 0.6, 1.5]]]))[0, 0], [0, 0.4, 1])
    pair = np.stack([np.full((2, 2), 0.3), np.full((2, 2), 0.8)])[None]
    np.testing.assert_allclose(to_pictures(pair), 0.3)  # the left one of a stereo pair


def test_a_picture_below_a_map_is_pale():
    np.testing.assert_allclose(soften(np.zeros((1, 1, 3)), 0.25)[0, 0], 0.75 * np.array(to_rgb(TILE)))
    np.testing.assert_allclose(soften(np.ones((1, 1, 3)), 1.0), 1.0)


def test_a_picture_fills_the_middle_of_its_box_in_its_own_proportions():
    assert fit((6, 18, 3), (10, 20, 90, 60)) == pytest.approx((10, 35, 90, 30))
    assert fit((18, 6, 3), (10, 20, 90, 60)) == pytest.approx((45, 20, 20, 60))


def test_a_picture_stands_upright_on_a_board_and_in_a_page():
    colours = np.zeros((4, 4, 3))
    colours[0] = 1.0
    colours[2, 1] = 0.1
    figure = canvas(100, 100)
    place_picture(drawing_board(figure), colours, (10, 10, 80, 80))
    with Image.open(BytesIO(to_png(figure, scale=1))) as picture:
        drawn = np.asarray(picture.convert("L"))
    assert drawn[20, 50] == 255
    assert drawn[80, 50] == 0
    with Image.open(BytesIO(b64decode(to_data_uri(colours).partition(",")[2]))) as picture:
        held = np.asarray(picture)
    assert np.array_equal(held, np.where(colours == 0.1, 26, colours * 255))  # 25.5, to the even number


@pytest.mark.parametrize("heat", [np.zeros((2, 2)), np.full((2, 2), 0.3), np.array([[0.3, 0.3 + 1e-8]])])
def test_a_flat_map_is_no_heat(heat):
    assert not stretch_heat(heat).any()
    picture = torch.rand(1, *heat.shape)
    figure = draw_evidence(picture, heat[None], torch.rand(1, 3))
    assert not figure.axes[1].images[1].get_array()[..., 3].any()


@pytest.mark.parametrize(
    "images", [torch.rand(8, 8), torch.rand(2, 4, 8, 8), torch.full((1, 8, 8), torch.nan)]
)
def test_what_is_not_a_stack_of_images_is_refused(images):
    with pytest.raises(UserError):
        draw_evidence(images, torch.rand(1, 8, 8), torch.rand(1, 3))


def test_pictures_have_two_pixels_for_one_of_the_screen():
    with Image.open(BytesIO(to_png(draw_curves(EPOCHS)))) as picture:
        assert picture.size == (1800, 600)


def test_the_same_drawing_gives_the_same_bytes():
    assert to_png(draw_curves(EPOCHS)) == to_png(draw_curves(EPOCHS))


@pytest.mark.parametrize(
    "path", sorted(Path(torchcaps.viz.__file__).parent.rglob("*.py")), ids=lambda p: p.name
)
def test_no_drawing_touches_the_global_state_of_pyplot(path):
    assert "pyplot" not in path.read_text()
