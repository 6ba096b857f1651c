"""The figures of routing annealing."""

from dataclasses import replace
from pathlib import Path

import pytest

from torchcaps.experiments.annealing import runs
from torchcaps.experiments.records import load_rows

RESULTS = Path(__file__).parents[3] / "results"


@pytest.mark.parametrize(("copies", "words"), [(1, "one seed each"), (2, "the median over seeds")])
def test_the_grid_says_whether_a_dot_is_of_one_seed(monkeypatch, copies, words):
    notes = []
    monkeypatch.setattr(runs, "draw_dots", lambda *_, note, **__: notes.append(note))
    monkeypatch.setattr(runs, "to_png", lambda _: b"")
    rows = [replace(row, runs=row.runs[:1] * copies) for row in load_rows(RESULTS, "fig-fashion")]
    runs.draw_grid(rows)
    assert words in notes[0]
