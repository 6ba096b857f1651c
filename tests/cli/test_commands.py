"""The command line end to end, as a person would use it."""

import errno
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
import warnings
from contextlib import nullcontext, suppress
from importlib.metadata import version
from inspect import unwrap
from io import BytesIO, TextIOWrapper
from itertools import count
from pathlib import Path
from typing import get_type_hints
from unittest.mock import patch

import numpy as np
import pytest
import torch
from PIL import Image
from typer.main import get_command

from torchcaps import inspect
from torchcaps.cli.main import _message_for, app
from torchcaps.cli.on_runs.evaluate import show_result
from torchcaps.cli.start import run as start_command
from torchcaps.cli.start import say_how_to_go_on
from torchcaps.cli.terminal import progress
from torchcaps.cli.terminal.examples import EXAMPLES
from torchcaps.core import EXTRAS, UserError
from torchcaps.data import write_twin
from torchcaps.storage import load_weights, save_weights
from torchcaps.train import load_recipe, load_run, load_split
from torchcaps.zoo.entry import PACKAGED

from command import completed as torchcaps

RECIPE = """
model: {name: dr_capsnet_tiny_test, image_size: 28, num_classes: 10}
data: {name: synthetic_mnist, limit: 100, validation: 0.2}
loss: {reconstruction: 0.0005}
batch_size: 16
epochs: 2
"""


def new_process(*arguments, cwd=None):
    command = [sys.executable, "-m", "torchcaps", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A trained run, made by the command line itself."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "small.yaml").write_text(RECIPE)
    done = torchcaps("train", "small.yaml", "--device", "cpu", "--out", "run", "--tensorboard", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "test accuracy" in done.stdout
    assert "epoch   2" in done.stdout
    assert "torchcaps explain run test:0" in done.stdout
    return folder / "run"


def processor_seconds():
    """What the processes that have ended took, however busy the machine was."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_help_answers_at_once():
    new_process("--help")  # the first start compiles the bytecode
    started = processor_seconds()
    done = new_process("--help")
    assert processor_seconds() - started < 0.5  # 0.11 s on a quiet machine; torch alone would take longer
    assert "train" in done.stdout
    modules = subprocess.run(
        [
            sys.executable,
            "-c",
            "import torchcaps.cli.main, sys; print({'torch', 'rich'} & sys.modules.keys())",
        ],
        capture_output=True,
        text=True,
    )
    assert modules.stdout.strip() == "set()"


def test_help_that_nobody_reads_ends_without_a_traceback():
    ours, theirs = os.pipe()
    os.close(ours)
    with open(theirs, "w") as gone:
        done = subprocess.run(
            [sys.executable, "-m", "torchcaps", "--help"], stdout=gone, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("command", EXAMPLES)
def test_every_command_shows_examples(command):
    done = torchcaps(command, "-h")
    assert done.returncode == 0
    shown = " ".join(done.stdout.split())
    for example in EXAMPLES[command]:
        assert example in shown
        assert example.startswith("torchcaps ")


def all_commands(group=None, name=""):
    """Every command that is no group, by its full name."""
    for part, command in (group or get_command(app)).commands.items():
        if hasattr(command, "commands"):
            yield from all_commands(command, f"{part} ")
        else:
            yield f"{name}{part}", command


def test_every_command_has_an_example_with_options_that_exist():
    for name, command in all_commands():
        examples = [line.strip() for line in command.epilog.splitlines() if f"torchcaps {name}" in line]
        assert examples, f"torchcaps {name} shows no example"
        options = {option for parameter in command.params for option in parameter.opts}
        for example in examples:
            used = {word for word in shlex.split(example) if word.startswith("--")}
            assert used <= options, example


def test_every_argument_and_option_says_what_it_is():
    silent = [
        f"{name} {each.name}" for name, command in all_commands() for each in command.params if not each.help
    ]
    assert silent == []


@pytest.mark.parametrize("group", [(), ("uav",), ("bench",), ("pose",), ("weights",)])
def test_a_list_of_commands_cuts_no_sentence(group, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert "..." not in torchcaps(*group, "-h").stdout.partition("Commands:")[2].partition("Examples:")[0]


def test_shells_complete_commands():
    code = "import sys; sys.argv = ['torchcaps']; from torchcaps.cli.main import run; run()"
    asked = {"_TORCHCAPS_COMPLETE": "complete_bash", "COMP_WORDS": "torchcaps pre", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | asked
    )
    assert done.stdout.split() == ["predict"]


def test_verbose_shows_where_an_error_arose(tmp_path):
    with pytest.raises(UserError, match="holds no run"):  # an error that leaves the command has a traceback
        torchcaps("-v", "eval", tmp_path)


def test_a_shown_recipe_explains_its_keys_and_is_read_back(tmp_path):
    done = torchcaps("recipe", "show", "mnist/dr_capsnet_rem", "--set", "epochs=3")
    assert "# Share of an insensitive weight that each step takes away" in done.stdout
    (tmp_path / "shown.yaml").write_text(done.stdout)
    assert load_recipe(tmp_path / "shown.yaml") == load_recipe("mnist/dr_capsnet_rem", ["epochs=3"])
    keys = json.loads(torchcaps("recipe", "show", "mnist/dr_capsnet_rem", "--json").stdout)
    assert keys["pruning"]["decay"] == 0.99


def test_the_version_is_told():
    done = torchcaps("--version")
    assert (done.returncode, done.stdout) == (0, f"torchcaps {version('torchcaps')}\n")


@pytest.mark.parametrize("kind", ["models", "routings", "datasets", "recipes"])
def test_everything_is_listed(kind):
    pattern = "dr_*" if kind == "models" else "*"
    rows = json.loads(torchcaps("list", kind, pattern, "--json").stdout)
    assert len(rows) > 3
    assert all(row["name"] for row in rows)
    table = torchcaps("list", kind, pattern).stdout
    assert all(row["name"] in table for row in rows)


def test_models_are_listed_with_their_counts():
    rows = {
        row["name"]: row for row in json.loads(torchcaps("list", "models", "*capsnet_mnist", "--json").stdout)
    }
    assert rows["dr_capsnet_mnist"]["params"] == 6_804_384
    assert rows["efficient_capsnet_mnist"]["params"] == 161_824
    assert set(rows["dr_capsnet_mnist"]) >= {"name", "family", "params", "input", "classes", "paper"}


def test_training_writes_tensorboard_events(run):
    assert list((run / "tensorboard").glob("events*"))


def test_a_refused_training_leaves_no_tensorboard_events(run, tmp_path):
    """Whether it is refused before or by its first step, or in the folder of another run."""
    command = "train", run.parent / "small.yaml", "--device", "cpu", "--tensorboard", "--out"
    before = sorted(run.rglob("*"))
    assert torchcaps(*command, run).returncode == 2
    assert sorted(run.rglob("*")) == before
    for wrong in ("model.num_classes=3", "model.image_size=44"):
        assert torchcaps(*command, tmp_path / "run", *setting(wrong)).returncode == 2
        assert not (tmp_path / "run").exists()


def test_a_run_is_evaluated(run):
    done = torchcaps("eval", run, "--json")
    result = json.loads(done.stdout)
    assert result["images"] == 128
    assert 0 <= result["accuracy"] <= 1
    assert "health" not in result
    assert "accuracy" in torchcaps("eval", run, "--split", "validation").stdout


def test_the_health_of_a_run_is_that_of_its_images(run):
    loaded = load_run(run)
    data, pipeline = load_split(loaded, "validation")
    inputs = pipeline.for_evaluation(data.images).inputs  # 20 images: all are looked at
    expected = inspect(loaded.model, inputs)
    options = "eval", run, "--split", "validation", "--health", "--device", "cpu"
    assert torchcaps(*options).stdout.endswith(f"\n\n{expected}\n")
    assert json.loads(torchcaps(*options, "--json").stdout)["health"] == json.loads(expected.to_json())


def test_images_are_classified(run, tmp_path):
    for name, mode in (("grey.png", "L"), ("colour.jpg", "RGB"), ("see-through.png", "RGBA")):
        size = (28, 28) if mode == "L" else (50, 40)
        pixels = np.random.default_rng(0).integers(0, 255, (*size, len(mode)), dtype=np.uint8)
        Image.fromarray(pixels.squeeze()).save(tmp_path / name)
    paths = sorted(tmp_path.iterdir())
    rows = json.loads(torchcaps("predict", run, *paths, "--json").stdout)
    assert [row["image"] for row in rows] == [str(path) for path in paths]
    for row in rows:
        first, second = sorted(row["activations"].items(), key=lambda pair: -pair[1])[:2]
        assert len(row["activations"]) == 10
        assert (row["class"], row["activation"], row["runner_up"]) == (*first, second[0])
        assert row["margin"] == pytest.approx(first[1] - second[1], abs=2e-6)
    assert torchcaps("predict", run, paths[0]).stdout.startswith(str(paths[0]))


def setting(*changes):
    """The options that change a recipe."""
    return [part for change in changes for part in ("--set", change)]


def test_a_network_without_couplings_is_not_sent_to_explain(run, tmp_path):
    plain = setting("model.routing=shared_matrix", "model.decoder=none", "loss.reconstruction=0", "epochs=1")
    done = torchcaps("train", run.parent / "small.yaml", *plain, "--device", "cpu", "--out", tmp_path / "run")
    assert "test accuracy" in done.stdout
    assert "torchcaps explain" not in done.stdout


def test_an_annealed_training_ends_with_the_iterations_it_found(run, tmp_path):
    annealed = setting("annealing={r0: 2, r_max: 2}", "epochs=1")
    done = torchcaps(
        "train", run.parent / "small.yaml", *annealed, "--device", "cpu", "--out", tmp_path / "run"
    )
    assert "with the weights of epoch 1, iterations 2; trained in" in done.stdout


def test_a_finished_run_is_not_trained_again(run):
    done = torchcaps(
        "train", run.parent / "small.yaml", "--device", "cpu", "--out", run, "--resume", "--json"
    )
    assert json.loads(done.stdout) == json.loads((run / "result.json").read_text())


@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_a_run_that_starts_from_a_pretrained_network_goes_on_where_the_package_moved(
    has_checkpoint, tmp_path, monkeypatch
):
    name, out = "dr_capsnet_minimal.mnist", tmp_path / "run"
    data = ("data.name=synthetic_mnist", "data.limit=40", "data.validation=0.2", "batch_size=16")
    options = setting(f"start_from={name}", *data, "optim.learning_rate=1e-8")  # the weights hardly move
    command = ["train", "mnist/dr_capsnet_minimal", *options, "--device", "cpu", "--out", out]
    assert torchcaps(*command, "--set", "epochs=1").returncode == 0
    assert json.loads((out / "recipe.json").read_text())["start_from"] == name
    if not has_checkpoint:  # it was killed in its first epoch
        for path in ("last.ckpt", "metrics.jsonl", "weights.safetensors", "result.json"):
            (out / path).unlink()
    moved = shutil.copytree(PACKAGED / name, tmp_path / "elsewhere" / name)
    for module in ("entry", "store"):
        monkeypatch.setattr(f"torchcaps.zoo.{module}.PACKAGED", moved.parent)
    done = torchcaps(*command, "--set", "epochs=2", "--resume")
    assert done.returncode == 0, done.stderr
    assert len((out / "metrics.jsonl").read_text().splitlines()) == 2
    learnt, given = (load_weights(folder / "weights.safetensors")[0] for folder in (out, moved))
    assert all(torch.allclose(learnt[each], given[each].float(), atol=1e-5) for each in learnt)


@pytest.mark.parametrize(
    "command",
    [
        ("train", "mnist/dr_capsnet_minimal"),
        ("rem", "mnist/dr_capsnet_minimal"),
        ("pose", "train", "pose/pose_mlp"),
    ],
    ids=lambda words: words[0],
)
def test_a_misspelt_network_to_start_from_is_refused(command, tmp_path):
    options = ("--set", "start_from=dr_capsnet_minimal.mnst", "--out", tmp_path / "run", "--device", "cpu")
    done = torchcaps(*command, *options)
    assert "did you mean dr_capsnet_minimal.mnist" in done.stderr
    assert not (tmp_path / "run").exists()


def literal_command(said):
    """The arguments of the command that a message ends with."""
    return shlex.split(said.splitlines()[-1].partition(": torchcaps ")[2])


def test_an_interrupted_training_makes_short_epochs_again_that_were_not_saved(run, tmp_path, monkeypatch):
    def interrupt(model, inputs):
        if next(epochs) == 3:
            raise KeyboardInterrupt
        return {}

    epochs = count(1)
    options = "--set", "epochs=4", "--device", "cpu", "--out", tmp_path / "run"
    monkeypatch.setattr("torchcaps.train.loop.loop.watch_health", interrupt)
    done = torchcaps("train", run.parent / "small.yaml", *options)
    assert "torchcaps: interrupted; go on after the last saved epoch: torchcaps train " in done.stderr
    assert len((tmp_path / "run/metrics.jsonl").read_text().splitlines()) == 2
    resumed = torchcaps(*literal_command(done.stderr))
    assert re.findall(r"^epoch +(\d)", resumed.stdout, re.MULTILINE) == ["2", "3", "4"]


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_signal_to_end_leaves_a_run_that_goes_on(options, run, tmp_path, monkeypatch):
    def end(model, inputs):
        os.kill(os.getpid(), signal.SIGTERM)
        return {}

    command = "train", run.parent / "small.yaml", "--device", "cpu", "--out", tmp_path / "run", *options
    with monkeypatch.context() as patched:
        patched.setattr("torchcaps.train.loop.loop.watch_health", end)
        done = torchcaps(*command)
    assert done.returncode == 143
    assert "torchcaps: stopped; go on after the last saved epoch: torchcaps train " in done.stderr
    assert "Traceback" not in done.stderr
    assert len((tmp_path / "run/metrics.jsonl").read_text().splitlines()) == 1
    assert torchcaps(*literal_command(done.stderr)).returncode == 0
    ended, whole = (json.loads((folder / "result.json").read_text()) for folder in (tmp_path / "run", run))
    assert ended["metrics"] == whole["metrics"]


def damage(folder):
    """Weights that give no numbers."""
    state, header = load_weights(folder / "weights.safetensors")
    save_weights(
        folder / "weights.safetensors", {name: values * torch.nan for name, values in state.items()}, header
    )


def test_a_network_that_gives_no_numbers_is_not_believed(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    damage(tmp_path / "run")
    Image.fromarray(np.zeros((28, 28), np.uint8)).save(tmp_path / "image.png")
    for arguments in (["predict", tmp_path / "run", tmp_path / "image.png"], ["eval", tmp_path / "run"]):
        done = torchcaps(*arguments, "--device", "cpu")
        assert done.returncode == 2, done.stdout
        assert "not finite" in done.stderr


def test_every_table_of_the_thesis_is_listed(tmp_path):
    rows = json.loads(torchcaps("reproduce", "--list", "--json", cwd=tmp_path).stdout)
    labels = {row["label"]: row["state"] for row in rows}
    assert {"tab:mnist-pruned-params", "tab:lung-results", "fig:lsl-errorplots"} < labels.keys()
    assert set(labels.values()) <= {"not started", "data missing"}  # there are no results here


def test_many_accuracies_are_listed_as_a_range(tmp_path):
    rows = [
        {
            "metric": "test_accuracy",
            "setting": str(ours),
            "thesis": thesis,
            "ours": ours,
            "protocols": [{"budget": "quick"}],
            "runs": [],
        }
        for ours, thesis in ((90.25, None), (98.5, 98.0), (97.0, 98.75))
    ]
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "fig-fashion.json").write_text(json.dumps({"rows": rows}))
    listed = torchcaps("reproduce", "--list", cwd=tmp_path).stdout
    assert "\nCapsule Networks Do Not Need to Model Everything\n" in listed
    (line,) = [line for line in listed.splitlines() if line.startswith("fig:fashion ")]
    assert "90.2 to 98.5, 3 settings (thesis 98.0 to 98.8, 2 settings)" in line
    assert "0 of 270" in line


def test_datasets_without_published_files_are_read():
    for command in ("get", "check"):
        done = torchcaps("data", command, "synthetic_mnist")
        assert done.returncode == 0
        assert "synthetic_mnist can be read" in done.stdout


def test_missing_files_are_reported(tmp_path):
    done = torchcaps("data", "check", "mnist", "--data-dir", tmp_path, "--json")
    assert done.returncode == 1
    assert not any(row["is_present"] for row in json.loads(done.stdout))


def test_files_that_were_packed_again_are_said_to_be_readable(tmp_path):
    write_twin("mnist", tmp_path, 10)
    done = torchcaps("data", "check", "mnist", "--data-dir", tmp_path)
    assert done.returncode == 1
    assert done.stdout.splitlines()[0].split("  ")[0] == "file"
    assert "True" not in done.stdout
    assert "mnist can be read, from other files than the published ones" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "mnist/dr_capsne"], "did you mean mnist/dr_capsnet"),
        (["train", "mnist5k/dr_capsnet_small", "--set", "optim.lr=1"], "recipe.optim"),
        (["train", "photos/efficient_capsnet", "--data", "nowhere"], "unknown dataset or folder 'nowhere'"),
        (["train", "mnist/dr_capsnet", "--data-dir", "nowhere", "--out", "run"], "torchcaps data get mnist"),
        (["eval", "nowhere"], "holds no run"),
        (["explain", __file__, "nowhere"], "holds no run"),
        (["reproduce", "fig:fix_vs"], "did you mean fig:fix_vs_ann"),
        (["reproduce", "fig:saliency_maps_sn_az"], "fig:saliency_maps_sn_az has no runs: the files"),
        (["reproduce", "fig:fashion", "--cluster", "local", "--processes", "2"], "choose one"),
        (["reproduce", "--pack", "runs.tar.gz"], "--pack: name the labels whose runs are meant"),
        (["reproduce", "--list", "--renew"], "--renew: name the labels whose runs are meant"),
        (["reproduce", "--setting", "DR*"], "--setting: name the labels whose runs are meant"),
        (["reproduce", "smoke-mnist", "--setting", "LeNet"], "matches 'lenet'; it has DR-CapsNet, decoder;"),
        (["reproduce", "fig:fashion", "--setting", "LeNet"], "; and 38 more"),
        (["reproduce", "smoke-mnist", "--minutes", "-1"], "minutes must not be negative"),
        (["reproduce", "smoke-mnist", "--minutes", "nan"], "minutes must not be negative"),
        (["reproduce", "smoke-mnist", "--device", "tpu"], "device must be one of"),
        (["data", "check", "mnits"], "did you mean mnist"),
    ],
)
def test_a_users_mistake_is_one_line_and_exit_code_2(arguments, message, tmp_path):
    done = torchcaps(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.strip().count("\n") == 0
    assert not done.stdout
    assert not list(tmp_path.rglob("error.json"))


@pytest.mark.parametrize("command", [("train", "mnist/dr_capsnet"), ("pose", "train")], ids="-".join)
def test_a_key_of_the_recipe_given_as_an_option_is_answered_with_set(command):
    done = torchcaps(*command, "--batch-size", "8")
    assert done.returncode == 2
    assert "No such option: --batch-size" in done.stderr
    assert "--set batch_size=VALUE" in done.stderr


@pytest.mark.slow
def test_a_file_where_a_folder_should_be_is_one_line(run, tmp_path):
    (tmp_path / "file").touch()
    for arguments in (["train", run / "recipe.yaml"], ["explain", run, "test:1"], ["shrink", run, "--force"]):
        done = torchcaps(*arguments, "--device", "cpu", "--out", tmp_path / "file")
        assert done.returncode == 2, done.stderr
        assert "file" in done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG, errno.EROFS])
def test_a_full_disk_is_one_line_where_no_file_is_named(number):
    assert _message_for(OSError(number, os.strerror(number))).endswith(os.strerror(number))
    assert _message_for(OSError("something else")) is None


@pytest.mark.parametrize(
    ("arguments", "function", "advice"),
    [
        (("train", "my recipe.yaml"), "recipe_for_data", "torchcaps train 'my recipe.yaml' --resume\n"),
        (("prune", "RUN"), "prune_run", "the same command goes on where it stopped"),
        (("eval", "RUN"), "load_run", "interrupted\n"),
    ],
)
def test_ctrl_c_says_how_to_go_on(arguments, function, advice, run):
    with patch(f"torchcaps.train.{function}", side_effect=KeyboardInterrupt):
        done = torchcaps(*(run if each == "RUN" else each for each in arguments))
    assert done.returncode == 130
    assert advice in done.stderr
    assert done.stderr.startswith("torchcaps: interrupted")


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ("-v uav train 'my maps' --resume --seed 1", "torchcaps -v uav train 'my maps' --seed 1 --resume\n"),
        ("demo", ""),  # which begins anew
        ("lung prepare patients", "goes on where it stopped"),
        ("bench train", ""),  # which has no --resume
        ("predict train photo.png", ""),  # a run in a folder of that name
    ],
)
def test_advice_after_ctrl_c_is_that_of_the_command(words, advice, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["torchcaps", *shlex.split(words)])
    say_how_to_go_on()
    said = capsys.readouterr().err
    assert advice in said if advice else said == "torchcaps: interrupted\n"


def test_a_sign_that_a_terminal_does_not_have_is_a_question_mark(monkeypatch):
    shown = TextIOWrapper(BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "argv", ["torchcaps", "weights", "list"])
    monkeypatch.setattr(sys, "stdout", shown)
    with suppress(SystemExit):
        start_command()
    shown.flush()
    assert b"median rotation error 10.24?" in shown.buffer.getvalue()  # degrees


def test_ctrl_c_while_modules_are_imported_is_one_line():
    code = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a job in the background ignores it
        "class Interrupts:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'torch': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        "from torchcaps.cli.start import run\n"
        "run()"
    )
    done = subprocess.run([sys.executable, "-c", code, "eval", "nowhere"], capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stderr.startswith("torchcaps: interrupted")
    assert done.stderr.count("\n") == 1


def test_an_image_of_16_bits_is_not_cut_to_white(run, tmp_path):
    Image.fromarray(np.full((28, 28), 300, np.uint16)).save(tmp_path / "deep.png")
    done = torchcaps("predict", run, tmp_path / "deep.png")
    assert done.returncode == 2
    assert "deep.png has values up to 300 where 65,535 is white" in done.stderr


def test_a_text_file_is_not_an_image(run, tmp_path):
    (tmp_path / "notes.png").write_text("hello")
    done = torchcaps("predict", run, tmp_path / "notes.png")
    assert done.returncode == 2
    assert "notes.png cannot be read as an image" in done.stderr


def test_several_runs_are_named_where_their_numbers_are_printed(run):
    done = torchcaps("eval", run, run, "--device", "cpu")
    assert done.stdout.count(f"{run}:\n") == 2
    assert f"{run}:" not in torchcaps("eval", run, "--device", "cpu").stdout


def test_a_pattern_that_no_name_matches_is_said():
    done = torchcaps("list", "models", "nothing*")
    assert "no models match 'nothing*'" in done.stderr
    assert torchcaps("list", "models", "nothing*", "--json").stdout.strip() == "[]"


def test_a_path_of_a_folder_is_data_for_every_command(photographs):
    done = torchcaps("data", "check", photographs)
    assert done.returncode == 0, done.stderr
    assert re.search(r": all \d+ training and \d+ test images can be read", done.stdout)


def test_a_check_counts_images_that_training_skips(tmp_path):
    write_twin("folder", tmp_path, 12)
    folder = next(path for path in sorted(tmp_path.rglob("*")) if any(path.glob("*.png")))
    Image.new("L", (4, 4)).save(folder / "moving.gif")
    done = torchcaps("data", "check", tmp_path)
    assert f"1 image will be skipped, such as {folder / 'moving.gif'}: training reads" in done.stdout


def test_images_that_are_left_out_are_told_where_a_folder_trains_or_measures(run, tmp_path):
    write_twin("folder", tmp_path, 12)
    moving = tmp_path / "test/a/moving.gif"
    Image.new("L", (4, 4)).save(moving)
    told = f"torchcaps: 1 image in {tmp_path} left out, such as {moving}: those of a folder end in .bmp"
    train = "train", "photos/efficient_capsnet", "--set", "model.num_classes=4"  # ends before it trains
    assert told in torchcaps(*train, "--data", tmp_path).stderr
    assert told not in torchcaps(*train, "--data", tmp_path, "--quiet").stderr
    assert told in torchcaps("eval", run, "--data", tmp_path).stderr
    moving.unlink()
    assert "left out" not in torchcaps(*train, "--data", tmp_path).stderr


def test_a_check_tells_of_images_that_are_not_used_and_of_those_used_twice(tmp_path):
    write_twin("folder", tmp_path, 12)
    image = next((tmp_path / "test/a").glob("*.png"))
    for copied in (tmp_path / "loose.png", tmp_path / "train/a/copied.png"):
        shutil.copy(image, copied)
    done = torchcaps("data", "check", tmp_path)
    assert f"1 image will not be used, such as {tmp_path / 'loose.png'}" in done.stdout
    assert f"such as {image}, a copy of {tmp_path / 'train/a/copied.png'}" in done.stdout
    found = json.loads(torchcaps("data", "check", tmp_path, "--json").stdout)
    assert found["images"] == {"training": 13, "test": 12}
    assert found["outside"] == [str(tmp_path / "loose.png")]


def test_data_that_are_not_there_may_be_a_folder(run):
    done = torchcaps("eval", run, "--data", "nonexist")
    assert done.returncode == 2
    assert "unknown dataset or folder 'nonexist'" in done.stderr


def test_one_bad_file_does_not_cost_the_answers_for_the_others(run, tmp_path):
    Image.fromarray(np.zeros((28, 28), np.uint8)).save(tmp_path / "b.png")
    (tmp_path / "a.png").write_text("hello")
    done = torchcaps("predict", run, tmp_path, "--json")
    assert done.returncode == 1
    (row,) = json.loads(done.stdout)
    assert row["image"].endswith("b.png")
    assert "a.png cannot be read as an image" in done.stderr
    assert "1 of 2 images has no answer" in done.stderr


def test_a_large_image_is_answered_without_a_warning_of_pillow(run, tmp_path, monkeypatch):
    Image.fromarray(np.zeros((28, 28), np.uint8)).save(tmp_path / "large.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 28 * 28 - 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = torchcaps("predict", run, tmp_path / "large.png")
    assert done.returncode == 0, done.stderr


def test_images_that_a_folder_leaves_out_are_told(run, tmp_path):
    for name in ("a.png", "b.gif"):
        Image.fromarray(np.zeros((28, 28), np.uint8)).save(tmp_path / name)
    done = torchcaps("predict", run, tmp_path)
    assert done.returncode == 0
    assert f"1 image in {tmp_path} left out, such as {tmp_path / 'b.gif'}" in done.stderr
    assert "left out" not in torchcaps("predict", run, tmp_path / "a.png").stderr


@pytest.mark.slow
def test_a_missing_extra_is_named():
    """As in an installation of the core alone."""
    code = "import sys; sys.modules['matplotlib'] = None; from torchcaps.cli.main import run; run()"
    done = subprocess.run([sys.executable, "-c", code, "demo"], capture_output=True, text=True)
    assert done.returncode == 2
    assert 'this command needs matplotlib: pip install "torchcaps[demo]"' in done.stderr


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """A folder for each of three classes, with photographs of several sizes and a file of Windows."""
    folder = tmp_path_factory.mktemp("own") / "my flowers"
    draw = np.random.default_rng(0)
    for number, name in enumerate(("aster", "lily", "rose")):
        (folder / name).mkdir(parents=True)
        (folder / name / "Thumbs.db").touch()
        for image in range(12):
            size = (40, 60) if image % 2 else (70, 50)
            pixels = draw.integers(80 * number, 80 * number + 60, (*size, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{image}.jpg")
    return folder


@pytest.mark.slow
def test_own_photographs_need_no_settings(photographs, tmp_path):
    command = "train", "photos/efficient_capsnet", "--data", photographs, "--device", "cpu"
    done = torchcaps(*command, "--set", "epochs=1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    quiet = torchcaps(*command, "--set", "epochs=1", "-q", "--out", tmp_path / "quiet")
    assert quiet.stdout.startswith("test accuracy")
    assert not quiet.stderr
    assert f"chosen for folder:{photographs}: model.num_classes=3, batch_size=4" in done.stderr
    next_step = done.stdout.splitlines()[-1].partition(": torchcaps ")[2]
    shown = torchcaps(*shlex.split(next_step), "--device", "cpu", cwd=tmp_path)
    assert ".html" in shown.stdout, shown.stderr
    run = tmp_path / "runs" / "my flowers-efficient_capsnet"
    recipe = json.loads((run / "recipe.json").read_text())
    assert (recipe["model"]["num_classes"], recipe["batch_size"]) == (3, 4)
    assert recipe["data"]["name"] == f"folder:{photographs}"


def test_folders_and_patterns_of_images_are_classified(run, photographs):
    by_folder = json.loads(torchcaps("predict", run, photographs, "--json").stdout)
    assert [row["image"] for row in by_folder] == sorted(map(str, photographs.rglob("*.jpg")))
    by_pattern = json.loads(torchcaps("predict", run, photographs / "*" / "3.jpg", "--json").stdout)
    assert by_pattern == [row for row in by_folder if row["image"].endswith("/3.jpg")]
    (photographs / "empty").mkdir()
    done = torchcaps("predict", run, photographs / "empty")
    (photographs / "empty").rmdir()
    assert done.returncode == 2
    assert "no image files" in done.stderr


def test_the_first_classes_are_shown(run, photographs):
    image = photographs / "rose" / "1.jpg"
    (row,) = json.loads(torchcaps("predict", run, image, "--top", 3, "--json").stdout)
    expected = sorted(row["activations"].items(), key=lambda pair: -pair[1])[:3]
    assert [(each["class"], each["activation"]) for each in row["top"]] == expected
    words = ", ".join(f"{name} {value:.3f}" for name, value in expected)
    assert torchcaps("predict", run, image, "--top", 3).stdout == f"{image}: {words}\n"


def test_the_classes_that_are_mistaken_for_each_other_are_shown(run):
    result = json.loads(torchcaps("eval", run, "--json").stdout)
    lines = torchcaps("eval", run).stdout.splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("true class"))
    table = [[int(count) for count in line.split()[1:]] for line in lines[head + 1 : head + 11]]
    assert table == result["confusion"]


@pytest.mark.parametrize("rank", ["0", "1"])
def test_of_several_processes_the_first_one_shows_progress(photographs, tmp_path, monkeypatch, rank):
    shown = []
    monkeypatch.setenv("LOCAL_RANK", rank)
    monkeypatch.setattr(progress, "working", lambda words: shown.append(words) or nullcontext())
    torchcaps(
        "train",
        "photos/efficient_capsnet",
        "--data",
        photographs,
        "--set",
        "model.num_classes=4",
        cwd=tmp_path,
    )
    assert shown == ["reading the data"] * (rank == "0")


def test_what_is_set_is_not_chosen(photographs, tmp_path):
    command = "train", "photos/efficient_capsnet", "--data", photographs, "--device", "cpu"
    done = torchcaps(*command, "--set", "model.num_classes=4", "--set", "batch_size=2", cwd=tmp_path)
    assert done.returncode == 2
    assert "chosen" not in done.stderr
    assert "set model.num_classes=3" in done.stderr
    assert not list((tmp_path / "runs").iterdir())


def test_a_start_that_fails_leaves_no_run(photographs, tmp_path):
    """The size of the images is refused by the first step."""
    command = "train", "mnist/dr_capsnet_minimal", "--data", f"{photographs}@44", "--device", "cpu"
    done = torchcaps(*command, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "model.image_size=44" in done.stderr
    assert not list(tmp_path.rglob("*.json"))


def test_every_missing_package_names_an_extra_that_brings_it():
    extras = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for package, extra in EXTRAS.items():
        name = {"cv2": "opencv-python"}.get(package, package)
        assert any(needed.startswith(name) for needed in extras[extra]), package


def test_an_unknown_option_is_exit_code_2():
    assert torchcaps("train", "--unknown").returncode == 2


def test_values_of_classes_stand_below_each_other_however_long_their_names_are(run, capsys):
    names = ["a", "one of many words and letters"]
    result = {"data": "x", "split": "test", "images": 4, "loss": 1.0, "accuracy": 0.5}
    tables = {"class_accuracy": dict.fromkeys(names, 0.5), "confusion": [[1, 1], [1, 1]]}
    show_result({**result, **tables}, load_run(run))
    rows = [line for line in capsys.readouterr().out.splitlines() if line.endswith("50.00%")][-2:]
    assert len({line.index("50.00%") for line in rows}) == 1


def test_what_is_written_is_known_to_be_a_file_or_a_folder_before_any_work():
    hints = {
        name: get_type_hints(unwrap(command.callback), include_extras=True)
        for name, command in all_commands()
    }
    outs = {name: each["out"].__metadata__[0] for name, each in hints.items() if "out" in each}
    assert len(outs) > 20
    assert {name for name, out in outs.items() if out.file_okay == out.dir_okay} == set()


def test_a_file_in_the_place_of_a_folder_is_refused(tmp_path):
    (tmp_path / "notes.txt").touch()
    done = torchcaps("demo", "--out", "notes.txt", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "'notes.txt' is a file" in done.stderr
