"""The tabs that compute something: poses, and parts and wholes."""

import base64
import re
from dataclasses import replace
from io import BytesIO

import pytest
from explorer.conftest import save_run
from PIL import Image

from torchcaps.core import UserError, say_truth
from torchcaps.explorer import Shelf, read_given
from torchcaps.explorer.subject.words import say_tree
from torchcaps.explorer.tabs import PartsShow, PoseShow
from torchcaps.explorer.tabs.poses import FRAMES
from torchcaps.losses import SpreadRotationLoss
from torchcaps.pages import TrueTrees
from torchcaps.train import load_run


def opened(uri):
    return Image.open(BytesIO(base64.b64decode(uri.partition(",")[2])))


def test_an_object_turns_in_its_true_and_in_its_predicted_pose(tmp_path):
    classes = ("cube", "tetrahedron")
    data = "synthetic_cube_tetrahedron"
    folder = save_run(tmp_path / "posed", "pose_mlp_tiny_test", data, classes, image_size=28, in_channels=3)
    assert read_given([str(folder)]).tabs["pose"] == [folder]
    show = PoseShow(folder)
    found = show.show(1)
    strip = opened(found["true"])
    assert strip.width == FRAMES * strip.height
    first, second = (strip.crop((k * 128, 0, (k + 1) * 128, 128)).tobytes() for k in (0, 3))
    assert first != second  # it turns
    assert "it is tetrahedron" in found["words"]
    assert found["total"] == 64
    with pytest.raises(UserError, match="images 0 to 63"):
        show.show(64)


def test_a_turn_that_looks_the_same_is_forgiven_where_the_run_knows_it(tmp_path):
    data, solids = "synthetic_cube_tetrahedron", ("cube", "tetrahedron")
    folder = save_run(tmp_path / "solids", "pose_mlp_tiny_test", data, solids, image_size=28, in_channels=3)
    show = PoseShow(folder)
    run = show.run

    def words_with(symmetries):
        loss = replace(run.recipe.loss, task_loss=SpreadRotationLoss(symmetries=symmetries))
        show.run = replace(run, recipe=replace(run.recipe, loss=loss))
        return [show.show(number)["words"] for number in range(8)]

    plain, forgiven = words_with(("none", "none")), words_with(solids)
    assert plain == words_with(())
    away = [[int(re.search(r"(\d+)°", words)[1]) for words in each] for each in (plain, forgiven)]
    assert max(away[0]) > 63 >= max(away[1][::2])  # no two turns of a cube look further apart
    assert all("or from one that looks the same" in words for words in forgiven)
    assert not any("looks the same" in words for words in plain)


def test_the_true_tree_stands_beside_the_carved_one(tmp_path):
    data = "partwhole:classes=3,branches=3,train=40,test=30"
    folder = save_run(tmp_path / "parts", data=data, classes=tuple("012"), image_size=32)
    given = read_given([str(folder)])
    assert given.tabs["parts"] == [folder]
    assert given.first == 1  # it can be asked about images as well
    shelf = Shelf(given)
    shelf.prepare()
    show = shelf.parts(0)
    assert show.show(0) is show.show(0)  # drawn once
    shelf.close()
    found = show.show(2)
    assert opened(found["picture"]).width > 800
    assert found["total"] == 24
    assert "Each dot is a capsule" in found["words"]
    with pytest.raises(UserError, match="images 0 to 23"):
        show.show(24)


def test_no_more_images_are_shown_than_there_are(tmp_path):
    data = "partwhole:classes=3,branches=3,train=40,test=5"
    show = PartsShow(save_run(tmp_path / "few", data=data, classes=tuple("012"), image_size=32))
    found = show.show(4)
    assert found["total"] == 5
    assert "of these 5 images" in found["about"]
    with pytest.raises(UserError, match="images 0 to 4"):
        show.show(5)


PARTS = "partwhole:classes=3,branches=3,train=40,test=30"


def parts_run(folder, model, channels=1):
    return save_run(
        folder, model, PARTS, tuple("012"), image_size=20, in_channels=channels, **{"decoder": "none"}
    )


def test_a_network_of_several_layers_shows_the_region_of_every_capsule(tmp_path):
    folder = parts_run(tmp_path / "levels", "parse_capsnet_tiny_test")
    show = PartsShow(folder)
    found = show.show(1)
    picture = opened(found["picture"])
    assert picture.width == 1000
    assert picture.height > 800  # the true tree, and two trees of four levels
    assert "Each small picture is a capsule" in found["words"]
    measured = {"accuracy": show.trees.num_right / 24, **show.trees.measure()}
    assert "accuracy_with_even" in measured
    assert found["about"] == say_truth(measured, "these 24 images")


def test_a_network_of_several_layers_on_a_grid_draws_no_hidden_capsule_as_a_place(tmp_path):
    trees = TrueTrees(load_run(parts_run(tmp_path / "gamma", "gamma_capsnet_tiny_test")), 2)
    assert trees.has_levels
    with pytest.raises(UserError, match="draw_levels"):
        trees.draw((0,))
    assert trees.draw_levels(0) is not None


def test_the_first_image_of_a_network_on_several_grids_can_be_drawn(tmp_path):
    folder = save_run(
        tmp_path / "deep", "deepcaps_tiny_test", PARTS, tuple("012"), image_size=32, in_channels=1
    )
    trees = TrueTrees(load_run(folder), 2)
    assert not trees.has_levels
    assert trees.draw((0,)) is not None


def test_a_tree_without_places_is_not_said_to_have_some():
    assert "places on the image" in say_tree(2, has_places=True)
    assert "look" not in say_tree(5, has_places=False)
