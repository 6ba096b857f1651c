"""`benchmarks/before_after.py` says which rows became slower."""

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "before_after.py"


@pytest.fixture(scope="module")
def compare():
    return runpy.run_path(str(SCRIPT))["compare"]


def row(side, ms, *, case="a layer", spread=0.02):
    return {
        "suite": "routing",
        "case": case,
        "backend": "fused",
        "batch": 8,
        "ms": ms,
        "spread": spread,
        "side": side,
    }


@pytest.mark.parametrize(("new", "verdict"), [(1.2, "slower"), (1.01, "equal"), (0.8, "faster")])
def test_a_row_is_slower_only_beyond_its_spread(compare, new, verdict):
    (line,) = compare([row("old", 1.0), row("new", new)])
    assert line.startswith(verdict)


def test_times_that_differ_between_turns_widen_the_spread(compare):
    (line,) = compare([row("old", 1.0), row("old", 1.5), row("new", 1.2), row("new", 1.2)])
    assert line.startswith("equal")


def test_a_row_that_one_tree_alone_has_is_left_out(compare):
    assert not compare([row("old", 1.0), row("new", 1.0, case="a new layer"), row("new", None)])
