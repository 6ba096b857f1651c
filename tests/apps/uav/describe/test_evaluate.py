"""A descriptor is tested again on the views of its training, and the result says which they are."""

import json

import pytest
from typer.testing import CliRunner

from torchcaps.apps.uav import Terrain, evaluate_descriptor, train_descriptor
from torchcaps.cli.main import app
from torchcaps.core import UserError
from torchcaps.data import PlacePlan, save_stack
from torchcaps.train import Machine, load_run, recipe_for_data
from torchcaps.zoo import load_pretrained

PLAN = PlacePlan(places=20, views=5, offset=20.0)
SMALL = (
    "epochs=1",
    "batch_size=10",
    "model.image_size=16",
    "data.preprocess.resize=16",
    "data.augment.motion_blur=2",
)


@pytest.fixture(scope="module")
def stack():
    return Terrain(seed=4).draw(2000.0, 600.0, 10.0, ("summer", "winter"))


@pytest.fixture(scope="module")
def run(stack, tmp_path_factory):
    folder = tmp_path_factory.mktemp("descriptor") / "run"

    def recipe(data):
        return recipe_for_data("retrieval/uav_small", list(SMALL), data=data).recipe

    train_descriptor([stack], folder, recipe, plan=PLAN, machine=Machine(device="cpu"))
    save_stack(folder.parent / "maps.npz", stack)
    return folder


def test_the_views_are_those_that_its_training_was_tested_on(run, stack):
    trained = json.loads((run / "result.json").read_text())["metrics"]
    found = evaluate_descriptor(load_run(run), [stack], PLAN)
    assert found["recall_at_1"] == trained["test_recall_at_1"]
    assert found["loss"] == pytest.approx(trained["test_loss"])
    assert (found["images"], found["places"]) == (20, 4)


def test_the_result_says_which_views_and_weights_and_names_no_folder(run, stack):
    found = evaluate_descriptor(load_run(run), [stack], PLAN)
    assert found["plan"] == {"places": 20, "views": 5, "offset": 20.0, "rotation": 6.0, "seed": 0}
    (ground,) = found["maps"]
    assert (ground["dates"], ground["metres_per_pixel"]) == (["summer", "winter"], 10.0)
    assert len(found["weights"]) == len(ground["pixels_sha256"]) == 64
    assert str(run.parent) not in json.dumps(found)
    other = evaluate_descriptor(load_run(run), [stack.dates(["winter", "summer"])], PLAN)
    assert other["maps"][0]["pixels_sha256"] != ground["pixels_sha256"]


def test_the_command_prints_and_writes_what_the_function_gives(run, stack, tmp_path):
    words = ("uav", "eval", run.parent / "maps.npz", "--run", run, "--device", "cpu", "--offset", 20)
    words = [*map(str, words), "--places", "20", "--views", "5"]
    shown = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "views.json")])
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith("20 views of 4 places: recall at 1 ")
    written = json.loads((tmp_path / "views.json").read_text())
    assert written == evaluate_descriptor(load_run(run), [stack], PLAN)
    printed = CliRunner().invoke(app, [*words, "--json"])
    assert json.loads(printed.stdout) == written


def test_a_network_of_another_task_is_refused(stack):
    run = load_pretrained("dr_capsnet_minimal.mnist")
    with pytest.raises(UserError, match="retrieval"):
        evaluate_descriptor(run, [stack], PLAN)
