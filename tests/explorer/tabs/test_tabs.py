"""The tabs that compute something: poses, and parts and wholes."""

import base64
from io import BytesIO

import pytest
from explorer.conftest import save_run
from PIL import Image

from torchcaps.core import UserError
from torchcaps.explorer import Shelf, read_given
from torchcaps.explorer.tabs import PoseShow
from torchcaps.explorer.tabs.poses import FRAMES


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
    with pytest.raises(UserError, match="images 0 to 23"):
        show.show(24)
