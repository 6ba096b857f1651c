"""Scripts in `benchmarks/` whose results pages quote run on packaged networks."""

import importlib.util
import sys
from pathlib import Path

import pytest

from torchcaps.experiments.records import load_rows
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
        monkeypatch.setattr(
            module, "load_labelled", lambda run, split: load_labelled(run, split, data_name="synthetic_mnist")
        )
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
