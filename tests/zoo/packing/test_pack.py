"""What packing keeps of a run, what it leaves out, and what the card says of it."""

import json
from pathlib import Path

import pytest
import torch
from zoo.conftest import METRICS, RECIPES, entry_in, packed_name, untrained_run

from torchcaps.core import MissingDataError, UserError, say_truth
from torchcaps.storage import checksum_of, load_weights, read_json, save_weights, write_json
from torchcaps.train import TASKS, load_run, read_recipe, shrink_run
from torchcaps.zoo import Packing, entry_of_model, pack_run
from torchcaps.zoo.measured import measure_rounding
from torchcaps.zoo.measured.rounding import CHANGES
from torchcaps.zoo.packing.card import SUITE_FILES, WORDS
from torchcaps.zoo.packing.renew_cards import renewed

TASK_NAMES = sorted(RECIPES)


def test_every_task_can_be_packed_rounded_and_described():
    ours = {name for name in TASKS.names() if TASKS[name].__module__.startswith("torchcaps.")}
    assert ours == set(WORDS) == set(CHANGES) == set(TASK_NAMES)


@pytest.mark.parametrize("task", TASK_NAMES)
def test_a_network_of_any_task_comes_back_as_it_was(task, zoo):
    packed, run = load_run(zoo / packed_name(task)), load_run(zoo.parent / "runs" / task)
    assert packed.task.name == task == entry_in(zoo / packed_name(task)).task
    for name, values in run.model.state_dict().items():
        assert torch.equal(packed.model.state_dict()[name], values)
    leading = next(iter(entry_in(zoo / packed_name(task)).metrics))
    assert leading == f"test_{run.task.leading_metric.name}"


@pytest.mark.parametrize(
    ("task", "said", "unsaid"),
    [
        ("classification", "accuracy 12.50%", "mask"),
        ("overlap", "the two classes", "mask"),
        ("segmentation", "Dice 0.7500", "classes"),
        ("pose", "median rotation error 4.50°", "mask"),
        ("retrieval", "squares of 320 m of ground, 32 pixels of 10 m", "classes"),
    ],
)
def test_a_card_speaks_of_its_task(task, said, unsaid, zoo):
    card = (zoo / packed_name(task) / "card.md").read_text()
    assert said in card
    assert unsaid not in card
    for part in ("licence: none", "trained in bfloat16", "stored as float32", "Limits: ", "Cite torchcaps"):
        assert part in card


def test_what_an_application_measured_is_packed_and_verified(zoo):
    entry = entry_in(zoo / packed_name("retrieval"))
    assert "matching.json" in entry.sha256
    assert read_json(zoo / entry.name / "matching.json")["pixel"] == 10.0


@pytest.mark.parametrize(
    "result",
    [[], None, {}, {"metrics": 3}, {"metrics": {"test_accuracy": "x"}}, {"metrics": {"test_loss": []}}],
)
def test_a_damaged_result_is_named_and_nothing_is_packed(result, tmp_path):
    run = untrained_run(tmp_path / "run", "classification")
    (run / "result.json").write_text(json.dumps(result))
    with pytest.raises(UserError, match=r"result\.json is damaged"):
        pack_run(run, packed_name("classification"), out=tmp_path / "zoo")
    assert not (tmp_path / "zoo").exists()


def test_a_card_says_how_the_data_differ_from_those_that_are_published(tmp_path):
    run = untrained_run(tmp_path / "run", "classification")
    notes = {"recut": "Images were cut anew.", "as-published": ""}
    for name, note in notes.items():
        pack_run(run, f"dr_capsnet_tiny_test.{name}", Packing(data_note=note), out=tmp_path)
    cards = [(tmp_path / f"dr_capsnet_tiny_test.{name}" / "card.md").read_text() for name in notes]
    recut, as_published = (next(line for line in card.split("\n") if "Data:" in line) for card in cards)
    assert recut == f"{as_published} Images were cut anew."


def test_no_path_of_a_machine_is_packed(tmp_path):
    data = {"name": f"folder:{tmp_path}/data/phantom-240/splits/share-100"}
    run = untrained_run(tmp_path / "run", "segmentation", data=data, start_from=str(tmp_path / "before"))
    state, header = load_weights(run / "weights.safetensors")
    save_weights(run / "weights.safetensors", state, {**header, "from": str(tmp_path / "before")})
    result = read_json(run / "result.json")
    write_json(run / "result.json", {**result, "recipe": {"data": data}, "files": [f"{tmp_path}/a.png"]})
    write_json(run / "calibration.json", {"data": data["name"]})
    entry = pack_run(run, "segcaps_tiny_test.phantom", Packing(licence="ours"), out=tmp_path / "out")
    folder = tmp_path / "out" / entry.name
    for path in folder.iterdir():
        assert str(tmp_path).encode() not in path.read_bytes(), path.name
    assert entry.data == read_recipe(folder).data.name == "folder:phantom"
    assert read_json(folder / "result.json")["recipe"]["data"]["name"] == "folder:phantom"
    assert read_json(folder / "result.json")["files"] == ["a.png"]
    assert read_json(folder / "calibration.json") == {"data": "folder:phantom"}
    assert read_recipe(folder).start_from == "before"


def test_of_several_networks_of_a_model_the_one_on_the_data_of_its_name_is_meant(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHCAPS_WEIGHTS", str(tmp_path / "out"))
    run = untrained_run(tmp_path / "run", "classification")
    for trained_on in ("one", "two"):
        pack_run(run, f"dr_capsnet_tiny_test.{trained_on}", out=tmp_path / "out")
    with pytest.raises(UserError, match="has pretrained weights for 'one', 'two'"):
        entry_of_model("dr_capsnet_tiny_test")
    pack_run(run, "dr_capsnet_tiny_test.test", out=tmp_path / "out")
    assert entry_of_model("dr_capsnet_tiny_test").trained_on == "test"
    assert entry_of_model("dr_capsnet_tiny_test", "two").trained_on == "two"


def test_data_of_a_folder_need_a_licence(tmp_path):
    run = untrained_run(tmp_path / "run", "segmentation", data={"name": "folder:somewhere"})
    with pytest.raises(UserError, match="--licence"):
        pack_run(run, "segcaps_tiny_test.x", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def _result_file(path: Path, model: str) -> Path:
    def row(setting, metric, *values):
        runs = [{"seed": seed, "value": value} for seed, value in enumerate(values)]
        protocol = {"budget": "quick", "epochs": 12, "model": model}
        return {"setting": setting, "metric": metric, "protocols": [protocol], "runs": runs}

    rows = [
        row("ours", "test_accuracy", 0.5, 0.7, 0.6),
        row("ours", "accuracy_with_even", 0.1, 0.2, 0.3),
        row("ours", "seconds", 3, 4, 5),
        row("theirs", "test_accuracy", 0.9),
    ]
    write_json(path, {"rows": rows})
    return path


def test_the_card_has_mean_and_spread_over_seeds_of_a_result_file(tmp_path):
    run = untrained_run(tmp_path / "run", "classification")
    results = _result_file(tmp_path / "tab.json", 'dr_capsnet_tiny_test(decoder="none")')
    entry = pack_run(
        run, packed_name("classification"), Packing(results=results, setting="ours"), out=tmp_path / "out"
    )
    found, even = entry.evidence.metrics
    assert (found.mean, found.seeds) == (pytest.approx(0.6), 3)
    assert found.spread == pytest.approx(0.1)  # of a sample
    card = (tmp_path / "out" / entry.name / "card.md").read_text()
    assert even.mean == pytest.approx(0.2)
    assert "accuracy 60.00% ± 10.00%, accuracy with even couplings 20.00% ± 10.00% (3 seeds; " in card
    assert "quick budget, at most 12 epochs" in card
    assert "“ours” in `results/tab.json`" in card
    assert entry_in(tmp_path / "out" / entry.name) == entry


@pytest.mark.parametrize(
    ("packing", "message"),
    [
        ({"results": "tab.json", "setting": "our"}, "did you mean ours"),
        ({"results": "other.json", "setting": "ours"}, "are runs of dr_capsnet_mnist"),
        ({"results": "none.json", "setting": "ours"}, "there is no result file"),
        ({"setting": "ours"}, "needs the name of its setting"),
    ],
)
def test_rows_that_are_not_of_this_network_are_refused(packing, message, tmp_path):
    run = untrained_run(tmp_path / "run", "classification")
    _result_file(tmp_path / "tab.json", "dr_capsnet_tiny_test")
    _result_file(tmp_path / "other.json", "dr_capsnet_mnist")
    given = {key: tmp_path / value if key == "results" else value for key, value in packing.items()}
    with pytest.raises(UserError, match=message):
        pack_run(run, packed_name("classification"), Packing(**given), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("task", TASK_NAMES)
def test_rounding_is_measured_on_test_images_of_every_task(task, zoo):
    found = measure_rounding(load_run(zoo.parent / "runs" / task))
    assert found.answers >= 20
    assert found.changed <= 0.001 * found.answers


def test_float16_is_refused_where_it_changes_answers(tmp_path):
    run = untrained_run(tmp_path / "run", "classification")
    state, header = load_weights(run / "weights.safetensors")
    weights = {name: value * 1e-7 if value.ndim > 1 else value for name, value in state.items()}
    save_weights(run / "weights.safetensors", weights, header)  # below the smallest step of float16
    with pytest.raises(UserError, match="float16 changes what this network says"):
        pack_run(run, packed_name("classification"), Packing(half=True), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert pack_run(run, packed_name("classification"), out=tmp_path / "out").stored_as == "float32"


def test_float16_needs_the_test_images(tmp_path):
    run = untrained_run(tmp_path / "run", "segmentation", data={"name": f"folder:{tmp_path}/gone"})
    packing = Packing(half=True, licence="none")
    with pytest.raises(MissingDataError, match="say with --data and --data-dir"):
        pack_run(run, packed_name("segmentation"), packing, out=tmp_path / "out")
    found = pack_run(
        run,
        packed_name("segmentation"),
        Packing(half=True, licence="none", data="synthetic_masks"),
        out=tmp_path / "out",
    )
    assert found.stored_as == "float16"


def test_a_shrunk_network_is_packed_and_loads(tmp_path):
    run = load_run(untrained_run(tmp_path / "run", "classification", pruning={"group": "type"}))
    with torch.no_grad():
        run.model.classes.weight[::3] = 0.0
    shrunk = shrink_run(run, tmp_path / "small")
    entry = pack_run(
        tmp_path / "small", "dr_capsnet_tiny_test.small", Packing(half=True), out=tmp_path / "out"
    )
    assert entry.parameters < sum(each.numel() for each in run.model.parameters())
    packed = load_run(tmp_path / "out" / entry.name).model
    images = torch.rand(2, 1, 28, 28)
    with torch.no_grad():
        torch.testing.assert_close(
            packed(images).activations, shrunk.model(images).activations, atol=5e-3, rtol=0
        )
    card = (tmp_path / "out" / entry.name / "card.md").read_text()
    assert "pruned by capsule types" in card
    assert "Training: 2 epochs" in card  # where the network was trained, not where it was packed
    assert "commit abc" in card
    assert "trained in bfloat16" in card
    assert entry.metrics["test_loss"] != 0.5  # tested as it is now


def test_a_run_without_a_result_is_tested_when_it_is_packed(tmp_path):
    run = untrained_run(tmp_path / "run", "classification")
    (run / "result.json").unlink()
    entry = pack_run(run, packed_name("classification"), out=tmp_path / "out")
    assert list(entry.metrics) == ["test_accuracy", "test_loss"]
    assert 0 <= entry.metrics["test_accuracy"] <= 1
    written = json.loads((tmp_path / "out" / entry.name / "result.json").read_text())
    assert written["metrics"] == entry.metrics
    assert METRICS["classification"]["test_accuracy"] != entry.metrics["test_accuracy"]


_PRECISIONS = {"": 0.08, "even_": 0.15, "random_": 0.1}
_TRUTH = {
    "suite": "partwhole",
    "limit": 500,
    "runs": {
        "run": [
            {"group": "clutter", "condition": "0", "accuracy": 1.0},
            {
                "group": "ground truth",
                "condition": "as trained",
                "accuracy": 0.96,
                "accuracy_with_even": 0.21,
                **{f"{kind}tree_precision": value for kind, value in _PRECISIONS.items()},
                **{f"{kind}tree_recall": value for kind, value in _PRECISIONS.items()},
            },
        ]
    },
}


def test_the_card_says_what_the_suite_of_true_trees_found(tmp_path):
    run = untrained_run(tmp_path / "run", "classification")
    write_json(run / "partwhole.json", _TRUTH)
    entry = pack_run(run, packed_name("classification"), out=tmp_path / "out")
    assert "partwhole.json" in entry.sha256
    card = (tmp_path / "out" / entry.name / "card.md").read_text()
    numbers = {key: value for key, value in _TRUTH["runs"]["run"][1].items() if isinstance(value, float)}
    assert say_truth(numbers, "up to 500 test images") in card


def test_a_renewed_entry_knows_the_checksum_of_a_file_that_was_measured_again(tmp_path):
    run = untrained_run(tmp_path / "run", "classification")
    write_json(run / "partwhole.json", _TRUTH)
    entry = pack_run(run, packed_name("classification"), out=tmp_path / "out")
    path = tmp_path / "out" / entry.name / "partwhole.json"
    write_json(path, {**_TRUTH, "limit": 1000})
    assert renewed(entry, tmp_path, path.parent).sha256["partwhole.json"] == checksum_of(path)


@pytest.mark.parametrize("file", SUITE_FILES)
def test_nothing_is_packed_of_a_run_with_a_damaged_file_of_a_suite(file, tmp_path):
    run = untrained_run(tmp_path / "run", "classification")
    write_json(run / file, {"suite": "affine", "limit": None, "runs": {"run": [], "other": []}})
    with pytest.raises(UserError, match=f"{file} is not what torchcaps eval"):
        pack_run(run, packed_name("classification"), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("found", [{}, {"runs": {}}, {"runs": {"run": [{}]}, "limit": None}, {"runs": [1]}])
@pytest.mark.parametrize("file", SUITE_FILES)
def test_a_damaged_file_of_a_suite_is_named(file, found):
    with pytest.raises(UserError, match=f"{file} is not what torchcaps eval"):
        SUITE_FILES[file](found)
