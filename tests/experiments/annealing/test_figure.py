"""The figures of routing annealing."""

from dataclasses import replace
from pathlib import Path

import pytest
from experiments.made_rows import seeds_row

from torchcaps.experiments.annealing import figure
from torchcaps.experiments.annealing.names import ANNEALED
from torchcaps.experiments.records import load_rows

RESULTS = Path(__file__).parents[3] / "results"


@pytest.mark.parametrize(("copies", "words"), [(1, "one seed each"), (2, "the median over seeds")])
def test_the_grid_says_whether_a_dot_is_of_one_seed(monkeypatch, copies, words):
    notes = []
    monkeypatch.setattr(figure, "draw_dots", lambda *_, note, **__: notes.append(note))
    monkeypatch.setattr(figure, "to_png", lambda _: b"")
    rows = [replace(row, runs=row.runs[:1] * copies) for row in load_rows(RESULTS, "fig-fashion")]
    figure.draw_grid(rows)
    assert words in notes[0]


@pytest.mark.parametrize(
    ("budget", "name"),
    [("full", "annealed, one training"), ("quick", "annealed, one training, quick budget")],
)
def test_the_curve_of_annealed_runs_names_their_budget_where_fixed_ones_have_another(budget, name):
    rows = [seeds_row("fixed 1", "test_loss", 0.1), seeds_row(ANNEALED, "test_loss", 0.1, budget=budget)]
    assert figure.name_annealed({row.setting: row for row in rows}) == name
