"""A pretrained network by its name wherever a command takes a run."""

import json
import shutil

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner
from zoo.conftest import packed_name

import torchcaps
from torchcaps.cli.main import app
from torchcaps.core import UserError
from torchcaps.data import SeasonStack, save_stack
from torchcaps.explorer import read_given
from torchcaps.zoo import (
    create_model,
    entry_folder,
    find_entry,
    find_run,
    list_weights,
    output_folder,
    packaged_weights,
)


@pytest.fixture(autouse=True)
def _here(zoo, tmp_path, monkeypatch):
    """The tiny networks are those of the user's folder; files are written into an empty one."""
    monkeypatch.setenv("TORCHCAPS_WEIGHTS", str(zoo))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "picture.png"
    Image.fromarray((np.pad(np.tri(18), 5) * 200).astype(np.uint8)).save(path)
    return path


def run(*arguments):
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    assert done.exit_code == 0, f"{done.output}{done.exception!r}"
    return done.output


def test_networks_that_a_user_packed_are_listed_beside_those_of_the_package(zoo):
    names = {entry.name for entry in list_weights()}
    assert names == {path.name for path in zoo.iterdir()} | {entry.name for entry in packaged_weights()}


@pytest.mark.parametrize("task", ["classification", "overlap", "segmentation", "pose", "retrieval"])
def test_a_model_of_every_task_comes_pretrained(task, zoo):
    name = packed_name(task)
    by_name, by_model = create_model(name, pretrained=True), create_model(name[:-5], pretrained=True)
    assert type(by_name) is type(by_model)
    assert output_folder(find_run(name)) != find_run(name) == zoo / name


@pytest.mark.parametrize(
    ("task", "key"),
    [
        ("classification", "class"),
        ("overlap", "classes"),
        ("segmentation", "share"),
        ("pose", "rotation"),
        ("retrieval", "descriptor"),
    ],
)
def test_predict_answers_for_an_image(task, key, picture):
    (row,) = json.loads(run("predict", packed_name(task), picture, "--json"))
    assert key in row


def test_eval_takes_names_and_folders_together(zoo):
    name = packed_name("classification")
    by_name, by_folder = json.loads(run("eval", name, zoo.parent / "runs" / "classification", "--json"))
    assert by_name["accuracy"] == by_folder["accuracy"]
    assert (by_name["run"], by_folder["run"]) == (name, str(zoo.parent / "runs" / "classification"))


@pytest.mark.parametrize(
    ("command", "task"),
    [(("parse",), "classification"), (("rem",), "classification"), (("pose", "eval"), "pose")],
)
def test_what_is_found_names_a_pretrained_network_as_the_user_did(command, task):
    found = json.loads(run(*command, packed_name(task), "--json", "--device", "cpu"))
    assert (found if isinstance(found, dict) else found[0])["run"] == packed_name(task)


def test_masks_of_one_class_are_compared_whatever_it_is_called(tmp_path):
    for folder in ("images", "masks"):
        (tmp_path / "scans" / folder).mkdir(parents=True)
        for number in range(5):
            Image.fromarray((np.tri(16) * 200).astype(np.uint8)).save(
                tmp_path / "scans" / folder / f"{number}.png"
            )
    name = packed_name("segmentation")
    unnamed = json.loads(run("eval", name, "--data", tmp_path / "scans", "--json"))
    (tmp_path / "scans" / "classes.txt").write_text("nodule\n")
    named = json.loads(run("eval", name, "--data", tmp_path / "scans", "--json"))
    assert named["dice"] == unnamed["dice"]


@pytest.mark.slow
def test_explain_and_export_write_into_a_folder_of_that_name_here(zoo, picture, tmp_path):
    name = packed_name("classification")
    before = sorted(path.name for path in (zoo / name).iterdir())
    run("explain", name, picture)
    run("export", name, "--format", "torch-export")
    assert (tmp_path / name / "explain").is_dir()
    assert (tmp_path / name / "model.pt2").is_file()
    assert sorted(path.name for path in (zoo / name).iterdir()) == before
    assert find_run(name) == zoo / name  # the folder here is no run
    assert torchcaps.explain(name, picture).predicted in set("0123456789")


@pytest.mark.parametrize("task", ["overlap", "segmentation", "pose", "retrieval"])
@pytest.mark.parametrize("command", [("explain", "picture.png"), ("parse",)])
def test_commands_about_classes_name_the_task_of_another_run(command, task, picture):
    name, *rest = command
    done = CliRunner().invoke(app, [name, packed_name(task), *rest])
    assert isinstance(done.exception, UserError)
    assert f"is a run of {task}; this needs one of classification" in str(done.exception)


def test_pose_eval_names_the_task_of_another_run():
    done = CliRunner().invoke(app, ["pose", "eval", packed_name("classification")])
    assert "is a run of classification; this needs one of pose" in str(done.exception)


def test_the_best_classes_of_a_digit_come_with_what_was_done_to_it(picture):
    name = "dr_capsnet_minimal.mnist"
    (row,) = json.loads(run("predict", name, picture, "--json"))
    assert run("predict", name, picture, "--top", "2").rstrip().endswith(f"; {row['preparation']}")


def test_lung_segment_takes_a_name(tmp_path):
    Image.fromarray(np.full((16, 16), 30, np.uint8)).save(tmp_path / "slice.png")
    run("lung", "segment", tmp_path / "slice.png", "--run", packed_name("segmentation"), "--out", "found")
    assert (tmp_path / "found" / "mask.png").is_file()
    result = json.loads((tmp_path / "found" / "result.json").read_text())
    assert result["run"] == packed_name("segmentation")


def test_lung_eval_names_the_network_as_the_user_did(tmp_path):
    facts = {
        "patient": "a",
        "nodule": 1,
        "slice": 0,
        "corner": [0, 0],
        "spacing_mm": None,
        "diameter_mm": None,
    }
    for kind in ("images", "masks"):
        (tmp_path / kind).mkdir()
        Image.fromarray((np.tri(16) * 200).astype(np.uint8)).save(tmp_path / kind / "first.png")
    (tmp_path / "manifest.json").write_text(json.dumps({"regions": {"first": facts}}))
    (tmp_path / "test.txt").write_text("first\n")
    found = json.loads(run("lung", "eval", packed_name("segmentation"), tmp_path, "--json"))
    assert found["run"] == packed_name("segmentation")


def test_pose_predict_and_eval_take_a_name(picture):
    (row,) = json.loads(run("pose", "predict", packed_name("pose"), picture, "--json"))
    assert len(row["rotation"]) == 4
    assert "rotation_error" in json.loads(run("pose", "eval", packed_name("pose"), "--json"))


def test_uav_compiles_a_map_with_a_name(tmp_path):
    images = np.random.default_rng(0).integers(0, 255, (1, 3, 36, 36), dtype=np.uint8)
    stack = SeasonStack(images, np.ones((1, 36, 36), bool), ("one",), 0.0, 0.0, 10.0, "EPSG:32633")
    save_stack(tmp_path / "map.npz", stack)
    options = ("--out", "map.tcmap", "--cell", "40", "--headings", "4", "-q")
    run("uav", "compile-map", tmp_path / "map.npz", "--run", packed_name("retrieval"), *options)
    assert (tmp_path / "map.tcmap").is_file()


def test_the_page_shows_classes_and_poses_and_refuses_others():
    given = read_given([packed_name("classification"), packed_name("pose")])
    assert given.choices[0].source == packed_name("classification")
    assert given.tabs["pose"] == [find_run(packed_name("pose"))]
    offered = {find_entry(str(choice.source)).task for choice in given.choices}
    assert offered == {"classification"}
    with pytest.raises(UserError, match="the page shows classification and pose"):
        read_given([packed_name("segmentation")])


def test_the_page_begins_with_the_best_reader_of_digits_and_offers_what_is_here(zoo, tmp_path, monkeypatch):
    assert read_given([]).choices[0].source == "efficient_capsnet_mnist.mnist"
    shutil.copytree(zoo / packed_name("classification"), tmp_path / "zoo" / packed_name("classification"))
    monkeypatch.setenv("TORCHCAPS_WEIGHTS", str(tmp_path / "zoo"))
    assert packed_name("classification") in {choice.source for choice in read_given([]).choices}
    (tmp_path / "zoo" / packed_name("classification") / "weights.safetensors").unlink()
    assert packed_name("classification") not in {choice.source for choice in read_given([]).choices}
    lines = run("weights", "list", "dr_capsnet_tiny_test*").splitlines()
    assert lines[-1].rstrip().endswith("to get")


def test_a_misspelt_name_is_answered_with_near_ones(picture):
    wrong = packed_name("classification").replace("here", "her")
    for command in ("predict", "explain"):
        done = CliRunner().invoke(app, [command, wrong, str(picture)])
        assert f"did you mean {packed_name('classification')}" in str(done.exception)


def test_a_run_folder_of_the_same_name_comes_first(zoo, tmp_path):
    name = packed_name("pose")
    (tmp_path / name).mkdir()
    assert find_run(name) == zoo / name
    (tmp_path / name / "recipe.json").write_text("{}")
    assert find_run(name).resolve() == tmp_path / name
    assert entry_folder(find_entry(name)) == zoo / name
