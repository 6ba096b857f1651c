"""Tables of how metrics change: means side by side, bold where the seeds tell them apart."""

from pathlib import Path

import pytest
from experiments.made_rows import a_result

from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.records import Protocol
from torchcaps.experiments.results import summarise
from torchcaps.experiments.results.page import rows_in
from torchcaps.experiments.robustness.changes import TABLES, render_changes
from torchcaps.experiments.robustness.claims import CLUTTER

ROOT = Path(__file__).parents[3]


def column(text, number):
    lines = [line[2:-2].split(" | ") for line in text.splitlines()[2:]]
    return {name: cells[number] for name, *cells in lines}


def rows_by_hand(values):
    """Rows of two settings: values of each run by setting and metric."""
    return [
        summarise(
            [a_result(seed, **{metric: value}) for seed, value in enumerate(found)],
            setting=setting,
            metric=metric,
            protocols=[Protocol(note="short")],
        )
        for setting, metrics in values.items()
        for metric, found in metrics.items()
    ]


def test_a_change_is_bold_where_the_seeds_tell_it():
    rows = rows_by_hand(
        {
            "DR-CapsNet, clutter 0.3": {
                "saliency_on_object": [0.2, 0.21, 0.19],
                "saliency_on_clutter": [0.1, 0.1, 0.1],
            },
            "DR-CapsNet+REM, clutter 0.3": {
                "saliency_on_object": [0.5, 0.51, 0.49],
                "saliency_on_clutter": [0.1, 0.2, 0.0],
            },
        }
    )
    shown = column(render_changes(lambda label: rows if label == CLUTTER else [], "background"), 1)
    assert shown["saliency on the object, %"] == "20.00 → **50.00**"
    assert shown["saliency on clutter, %"] == "10.00"
    assert shown["saliency on the background, %"] == "70.00 → **40.00**"
    assert shown["even map on the object, %"] == ""


@pytest.mark.parametrize("name", TABLES)
def test_every_change_compares_settings_that_exist(name):
    for change in TABLES[name][0].values():
        settings = {setting.name for setting in EXPERIMENTS[change.label].settings}
        assert {change.before, change.after} <= settings


def test_shares_of_the_committed_runs_add_up():
    for number in range(4):
        shown = column(render_changes(rows_in(ROOT / "results"), "background"), number)
        for family in ("saliency", "contributions", "even map"):
            first = [
                shown[f"{family} on {place}, %"].split(" ")[0]
                for place in ("the object", "clutter", "the background")
            ]
            assert sum(map(float, first)) == pytest.approx(100, abs=0.02)
