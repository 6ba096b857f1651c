import pytest

from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.results import judge, mean_curve, render_overview, render_page, write_results


def row(ours, **changes):
    values = {"setting": "fixed 1", "metric": "test_accuracy", "thesis": 90.0, "ours": ours, "spread": 0.5}
    run = {"seed": 42, "device": "cpu", "precision": "32", "seconds": 3600.0, "parameters": 1}
    return {**values, "seeds": 3, "protocol": "full budget, 2 epochs", "runs": [run], **changes}


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (row(89.5), "confirmed"),
        (row(91.5), "beyond"),
        (row(88.5), "not confirmed"),
        (row(88.5, protocol="quick budget, 2 epochs"), "open"),
        (row(88.5, seeds=1, spread=None), "open"),
        (row(None), "open"),
        (row(120.0, metric="keys"), "not confirmed"),
    ],
)
def test_a_row_is_judged_by_its_spread_and_protocol(found, verdict):
    assert judge(found) == verdict


def test_a_page_holds_table_claims_and_protocol(tmp_path):
    experiment = EXPERIMENTS["fig:fix_vs_ann"]
    write_results(tmp_path, experiment.slug, [row(89.5)], "command")
    page = render_page(experiment, tmp_path)
    assert "| fixed 1 | test_accuracy | 90.00 | 89.50 ± 0.50 | 3 |" in page
    assert "- fixed 1, test_accuracy: **confirmed**" in page
    assert page.count("**open**") == len(experiment.claims)
    assert "full budget, 2 epochs: 1 settings" in page
    assert "1.0 hours of training in all, on cpu, precision 32" in page


def test_rows_of_a_larger_budget_are_not_replaced(tmp_path):
    write_results(tmp_path, "fig-x", [row(1.0)], "c")
    write_results(tmp_path, "fig-x", [row(2.0, protocol="quick budget")], "c")
    assert '"ours": 1.0' in (tmp_path / "fig-x.json").read_text()
    write_results(tmp_path, "fig-x", [row(3.0)], "c")
    assert '"ours": 3.0' in (tmp_path / "fig-x.json").read_text()


def test_curves_are_averaged_where_runs_have_come():
    curve = mean_curve([{1: 0.5, 2: 0.6}, {1: 0.7}], "test_accuracy")
    assert curve["at"] == [1, 2]
    assert curve["mean"] == pytest.approx([60, 60])
    assert curve["spread"] == [pytest.approx(200**0.5, abs=1e-3), None]
    assert curve["seeds"] == [2, 1]


def test_the_overview_counts_verdicts_and_names_what_waits(tmp_path):
    experiment = EXPERIMENTS["fig:fix_vs_ann"]
    write_results(tmp_path, experiment.slug, [row(89.5)], "command")
    page = render_overview(tmp_path)
    assert f"| {experiment.chapter} | 0 | 0 | 0 | {len(experiment.claims)} |" in page
    assert page.count("**open**") == len(experiment.claims)
    assert "[`fig:fix_vs_ann`](fig-fix_vs_ann.md)" in page
    assert "`fig:fashion`" in page.rpartition("## Without runs so far")[2]
