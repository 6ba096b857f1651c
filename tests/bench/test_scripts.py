"""Scripts in `benchmarks/` whose results pages quote run on packaged networks."""

import importlib.util
import runpy
import sys
from functools import partial
from pathlib import Path

import pytest

from torchcaps.experiments.records import load_rows
from torchcaps.explorer import read_given
from torchcaps.train import load_labelled
from torchcaps.zoo import find_run

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    """A script by its name, with drawn digits for the images of a network's own data."""

    def load(name):
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        drawn = partial(load_labelled, data_name="synthetic_mnist")
        monkeypatch.setattr(module, "load_labelled", drawn, raising=False)
        return module

    return load


def test_readings_of_trees_are_compared_with_the_thesis(script, tmp_path, capsys):
    script("tree_readings").main(tmp_path, "efficient_capsnet_mnist.mnist")
    rows = {row.setting: row for row in load_rows(tmp_path, "tree-readings") if row.metric == "plain_entropy"}
    assert {row.thesis for row in rows.values()} == {4.38}
    assert {
        "MNIST, over parents, then prior",
        "MNIST, over children, then prior, axes swapped",
    } <= rows.keys()
    assert "by all: " in capsys.readouterr().out


def test_early_exits_are_measured(script, tmp_path):
    script("early_exit").main(find_run("dr_capsnet_minimal.mnist"), tmp_path)
    assert {row.metric for row in load_rows(tmp_path, "early-exit")} >= {"rounds", "milliseconds"}


def test_early_exits_of_another_routing_are_refused(script, tmp_path):
    with pytest.raises(SystemExit, match="does not route by dynamic"):
        script("early_exit").main(find_run("gamma_capsnet_mnist.mnist-rem"), tmp_path)


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_a_script_says_how_it_is_called(name, monkeypatch, capsys):
    if name == "conv_probe":
        pytest.importorskip("triton")
    words = ["--help"] if name == "explorer" else []  # it measures without arguments
    monkeypatch.setattr(sys, "argv", [name, *words])
    monkeypatch.setattr(sys, "path", sys.path[:])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    assert stopped.value.code == (0 if words else 2)
    assert "usage" in "".join(capsys.readouterr())


def test_the_explorer_is_measured_on_runs_that_it_makes(script, tmp_path, monkeypatch):
    explorer = script("explorer")
    monkeypatch.setattr(explorer, "RUNS", {"parts": explorer.RUNS["parts"]})
    (run,) = explorer.make_runs(tmp_path)
    assert read_given([run]).tabs["parts"]
