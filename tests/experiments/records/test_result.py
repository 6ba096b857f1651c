"""Results of runs are read as they were written; damaged ones are named."""

import json

import pytest
from experiments.made_rows import FACTS, RECIPE

from torchcaps.core import UserError
from torchcaps.experiments.records import read_result

GOOD = {**FACTS, "metrics": {"test_accuracy": 0.5, "epochs": 2}, "recipe": RECIPE}


def read(folder, **changes):
    path = folder / "result.json"
    path.write_text(json.dumps({**GOOD, **changes}))
    return read_result(path)


def test_a_result_is_read_with_what_older_ones_lack(tmp_path):
    found = read(tmp_path)
    assert (found.metrics, found.recipe) == (GOOD["metrics"], RECIPE)
    assert (found.facts.seed, found.facts.epochs, found.facts.epochs_allowed) == (42, 2, 2)
    assert (found.annealing, found.data_protocol, found.facts.concurrency) == ((), 1, None)
    found = read(tmp_path, annealing=[{"iterations": 1}, {"iterations": 2}], data_protocol=3)
    assert (found.annealing, found.data_protocol) == (({"iterations": 1}, {"iterations": 2}), 3)


@pytest.mark.parametrize(
    "changes",
    [
        {"annealing": 3},
        {"annealing": [3]},
        {"data_protocol": "x"},
        {"data_protocol": None},
        {"metrics": 3},
        {"recipe": {}},
        {"recipe": None},
        {"seed": "x"},
        {"series": 3},
    ],
)
def test_a_damaged_result_is_named(tmp_path, changes):
    with pytest.raises(
        UserError, match=r"result\.json is damaged \(.*delete it and call the same command again"
    ):
        read(tmp_path, **changes)
