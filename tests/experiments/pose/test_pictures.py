"""The pictures of the document on poses."""

from io import BytesIO

import pytest
from experiments.made_rows import a_row
from PIL import Image

from torchcaps.core.errors import UserError
from torchcaps.experiments.pose.pictures import draw_predictions
from torchcaps.experiments.pose.predictions import PICTURE, draw_compared, predict_poses
from torchcaps.experiments.records import Details
from torchcaps.train import Machine, Silent, load_recipe, load_run, train


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    changes = {
        "model": {"name": "pose_mlp_tiny_test", "image_size": 16, "num_classes": 2},
        "data.name": "synthetic_cube_tetrahedron",
        "data.limit": 32,
        "batch_size": 16,
        "epochs": 1,
    }
    folder = tmp_path_factory.mktemp("run") / "solids"
    train(load_recipe("pose/pose_mlp", changes=changes), folder, Machine(device="cpu"), watcher=Silent())
    return load_run(folder, "cpu")


def test_predictions_are_drawn_beside_what_was_seen(run):
    with Image.open(BytesIO(draw_predictions(run))) as picture:
        assert picture.width > picture.height > 100


def test_only_objects_that_are_rendered_can_be_drawn(run, monkeypatch):
    from torchcaps.experiments.pose import predictions

    monkeypatch.setattr(predictions, "load_dataset", lambda *_, **__: type("Stored", (), {"images": None}))
    with pytest.raises(UserError, match="rendered when it is read"):
        draw_predictions(run)


def test_networks_are_drawn_below_the_images_they_saw(run):
    details = Details(pictures={PICTURE: predict_poses(run).packed()})
    rows = [a_row(name, "test_accuracy", 1.0, details=details) for name in ("MLP", "ConvNet")]
    with Image.open(BytesIO(draw_compared(rows))) as picture:
        assert picture.height > 300  # three rows
    assert draw_compared([a_row("MLP", "test_accuracy", 1.0)]) is None


def test_objects_that_were_turned_as_a_network_says_are_not_called_images(run, monkeypatch):
    from torchcaps.experiments.pose import predictions

    drawn = []
    monkeypatch.setattr(predictions, "to_png", lambda figure, scale: drawn.append(figure) or b"picture")
    details = Details(pictures={PICTURE: predict_poses(run).packed()})
    draw_compared([a_row("MLP", "test_accuracy", 1.0, details=details)])
    assert [text.get_text() for text in drawn[0].texts] == ["input", "image", "MLP", "rotation found"]
