from dataclasses import replace

import pytest
from experiments.made_rows import a_row, a_run

from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.records import Protocol
from torchcaps.experiments.results import judged_figures, write_results
from torchcaps.experiments.results.gather import mean_curve
from torchcaps.experiments.results.judge import judge, judge_count
from torchcaps.experiments.results.overview import render_overview
from torchcaps.experiments.results.page import render_page, rows_in
from torchcaps.experiments.results.tables import render_table

FULL, QUICK, SMOKE = (Protocol(budget=budget, epochs=2) for budget in ("full", "quick", "smoke"))


def row(ours, **changes):
    usual = {"thesis": 90.0, "protocols": (FULL,), "seeds": 3, "seconds": 3600.0}
    metric, made = changes.pop("metric", "test_accuracy"), {**usual, **changes}
    return a_row("fixed 1", metric, ours, **{"spread": None if made["seeds"] == 1 else 0.1, **made})


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (row(89.9), "confirmed"),
        (row(89.9, protocols=(QUICK,)), "confirmed"),
        (row(89.6), "open"),  # the interval ends beyond half a point
        (row(90.0, seeds=2), "open"),  # two seeds that are this close may be so by chance
        (row(90.0, seeds=2, spread=0.01), "confirmed"),
        (row(90.0, spread=0.3, seeds=5), "open"),
        (row(90.0, spread=0.2, seeds=5), "confirmed"),
        (row(89.6, spread=5.0), "open"),  # noise confirms nothing
        (row(61.0, spread=15.1, metric="sparsity"), "open"),
        (row(61.0, spread=1.0, metric="sparsity"), "not confirmed"),
        (row(78.0, spread=1.0, metric="sparsity", seeds=2), "open"),
        (row(78.0, spread=1.0, metric="sparsity", seeds=5), "not confirmed"),
        (row(92.0, spread=0.5, metric="undertrained_sparsity"), "confirmed"),
        (row(38.0), "not confirmed"),
        (row(38.0, protocols=(QUICK,)), "open"),  # more epochs may change it
        (row(38.0, protocols=(QUICK,), seeds=1), "open"),
        (row(91.8), "beyond"),
        (row(91.8, protocols=(QUICK,)), "beyond"),
        (row(91.5, seeds=2), "open"),
        (row(90.7), "open"),
        (row(91.5, seeds=1), "open"),
        (row(88.2), "not confirmed"),
        (row(88.5, protocols=(QUICK,)), "open"),
        (row(88.5, seeds=1), "open"),
        (row(120.0, metric="keys"), "not confirmed"),
        (row(60.0, metric="keys"), "beyond"),  # fewer trees are better
        (row(85.6, metric="keys", spread=0.02), "confirmed"),  # a twentieth of 90 is 4.5
        (row(85.0, metric="keys"), "beyond"),
        (row(60.0, metric="keys", protocols=(QUICK,)), "open"),  # less training may have made them fewer
        (row(60.0, metric="primary_capsules"), "not confirmed"),
        (row(90.4, spread=0.02, metric="entropy"), "confirmed"),
        (row(90.4, spread=0.02, metric="novel_entropy"), "confirmed"),
        (row(92.0, metric="novel_entropy"), "not confirmed"),  # half a bit, no twentieth
    ],
)
def test_a_row_is_judged_by_its_seeds_and_protocol(found, verdict):
    assert judge(found, 90.0) == verdict


@pytest.mark.parametrize(
    ("accuracy", "protocol", "verdict"),
    [
        (89.9, FULL, "beyond"),
        (92.0, QUICK, "beyond"),
        (80.0, FULL, "not confirmed"),
        (80.0, QUICK, "open"),
    ],
)
def test_more_zeros_at_less_accuracy_are_not_beyond_the_thesis(accuracy, protocol, verdict):
    found = [
        row(accuracy, metric="quantized_accuracy", protocols=(protocol,)),
        row(99.0, metric="sparsity", protocols=(protocol,)),
    ]
    verdicts = [verdict for _, verdict in judged_figures(EXPERIMENTS["tab:mnist-pruned-params"], found)]
    assert verdicts[1] == verdict


def a_count(ours, **changes):
    return row(ours, **{"metric": "training_gflops", "seeds": 1, **changes})


@pytest.mark.parametrize(
    ("found", "thesis", "verdict"),
    [
        (a_count(12.8976), 12.9, "confirmed"),
        (a_count(12.8976, protocols=(QUICK,)), 12.9, "confirmed"),
        (a_count(12.8976, seeds=3, spread=0.0), 12.9, "confirmed"),
        (a_count(12.96), 12.9, "not confirmed"),  # a twentieth is not near enough for a count
        (a_count(12.84), 12.9, "not confirmed"),  # nor is fewer better: it would be another network
        (a_count(12.84, protocols=(QUICK,)), 12.9, "not confirmed"),
        (a_count(1970.0, metric="bottleneck"), 1970.0, "confirmed"),
        (a_count(1947.0, metric="bottleneck"), 1970.0, "not confirmed"),
        (a_count(1947.0, metric="bottleneck", seeds=3, spread=0.0), 1970.0, "not confirmed"),
        (a_count(1970.0, metric="bottleneck", seeds=3, spread=80.0), 1970.0, "open"),  # it has seeds
        (a_count(64.0, metric="bottleneck", protocols=(SMOKE,)), 1970.0, "open"),  # of another network
    ],
)
def test_one_run_decides_a_count_both_ways(found, thesis, verdict):
    assert judge_count(found, thesis) == verdict


def test_only_what_an_experiment_counts_is_decided_by_one_run():
    experiment = replace(EXPERIMENTS["tab:performance-dynamiccaps"], other_data=())
    found = [
        a_count(ours, thesis=thesis, metric=metric)
        for metric, ours, thesis in (
            ("bottleneck", 2048.0, 2048.0),
            ("primary_capsules", 250.0, 256.0),
            ("gpu_memory_gb", 47.02, 47.02),
            ("epoch_seconds", 462.0, 462.0),
        )
    ]
    verdicts = [verdict for _, verdict in judged_figures(experiment, found)]
    assert verdicts == ["confirmed", "not confirmed", "open", "open"]
    elsewhere = [verdict for _, verdict in judged_figures(EXPERIMENTS["fig:flops_vs_acc"], found)]
    assert elsewhere == ["open"] * 4
    page = render_page(experiment, lambda label: found)
    assert "no training changes them: bottleneck; primary capsules; training operations." in page
    assert "no training changes them" not in render_page(EXPERIMENTS["fig:flops_vs_acc"], lambda label: found)


def test_a_figure_of_fewer_seeds_than_its_line_says_so():
    table = render_table(
        [
            row(91.0, metric="entropy", thesis=None, seeds=1),
            row(90.0),
            row(50.0, metric="sparsity", seeds=2),
        ]
    )
    assert (
        "| 91.00 (1 seed) | 90.00 ± 0.10 (thesis 90.00) | 50.00 ± 0.10 (thesis 90.00, 2 seeds) | 3 |" in table
    )


def test_a_page_holds_table_claims_and_protocol(tmp_path):
    experiment = EXPERIMENTS["fig:fix_vs_ann"]
    write_results(tmp_path, experiment.slug, [row(89.75, spread=0.05)], "command")
    page = render_page(experiment, rows_in(tmp_path))
    assert "| fixed 1 | test accuracy, % | 90.00 | 89.75 ± 0.05 | 3 |" in page
    assert "- fixed 1, test accuracy: **confirmed**" in page
    assert page.count("**open**") == len(experiment.claims)
    assert "full budget, 2 epochs, all images: 1 setting\n" in page
    assert "3.0 hours of training in all, on cpu, precision 32" in page


def test_runs_behind_several_rows_count_once_and_the_fewest_seeds_are_told(tmp_path):
    experiment = EXPERIMENTS["fig:fix_vs_ann"]
    rows = [row(89.5), row(50.0, metric="sparsity", seeds=2)]
    write_results(tmp_path, experiment.slug, rows, "command")
    page = render_page(experiment, rows_in(tmp_path))
    assert "- 3 runs, 3.0 hours of training in all" in page
    assert "Decided by runs of the full budget, with at least 2 seeds of a setting." in page


def test_two_metrics_are_rows_of_their_own_and_three_are_columns():
    two = [row(90.0), row(50.0, metric="sparsity")]
    assert "| setting | metric | thesis | ours | seeds | protocol |" in render_table(two)
    assert "| setting | test accuracy, % | sparsity, % | entropy, bits |" in render_table(
        [*two, row(1.0, metric="entropy")]
    )


def test_the_legend_allows_a_short_protocol_the_verdict_beside_it(tmp_path):
    experiment = EXPERIMENTS["fig:fix_vs_ann"]
    found = row(89.9, protocols=(QUICK,))
    write_results(tmp_path, experiment.slug, [found], "command")
    page = render_page(experiment, rows_in(tmp_path))
    assert "- fixed 1, test accuracy: **confirmed**" in page
    assert "A shorter protocol than the thesis's can confirm a figure" in page


def test_a_page_says_how_many_runs_shared_the_device_where_that_is_known(tmp_path):
    experiment = EXPERIMENTS["fig:fix_vs_ann"]
    runs = (a_run(0.9, concurrency=6), a_run(0.9, seed=43))
    write_results(tmp_path, experiment.slug, [row(89.5, runs=runs)], "command")
    page = render_page(experiment, rows_in(tmp_path))
    assert "on cpu, precision 32, 6 runs at a time where that is known" in page


def test_a_page_says_that_a_run_went_on_elsewhere(tmp_path):
    experiment = EXPERIMENTS["fig:fix_vs_ann"]
    parts = ({"from_epoch": 0, "device": "a GPU"}, {"from_epoch": 7, "device": "cpu"})
    write_results(tmp_path, experiment.slug, [row(89.5, runs=(a_run(0.9, parts=parts),))], "command")
    assert "on a GPU, then cpu, precision 32" in render_page(experiment, rows_in(tmp_path))


def test_rows_of_a_larger_budget_are_not_replaced(tmp_path):
    write_results(tmp_path, "fig-x", [row(1.0)], "c")
    write_results(tmp_path, "fig-x", [row(2.0, protocols=(QUICK,))], "c")
    assert '"ours": 1.0' in (tmp_path / "fig-x.json").read_text()
    write_results(tmp_path, "fig-x", [row(3.0)], "c")
    assert '"ours": 3.0' in (tmp_path / "fig-x.json").read_text()


def test_any_budget_replaces_rows_that_a_script_made(tmp_path):
    write_results(tmp_path, "fig-x", [row(1.0, protocols=())], "c")
    write_results(tmp_path, "fig-x", [row(2.0, protocols=(QUICK,))], "c")
    assert '"ours": 2.0' in (tmp_path / "fig-x.json").read_text()


def test_curves_are_averaged_where_runs_have_come():
    curve = mean_curve([{1: 0.5, 2: 0.6}, {1: 0.7}], "test_accuracy")
    assert curve.at == (1, 2)
    assert curve.mean == pytest.approx([60, 60])
    assert curve.spread == (pytest.approx(200**0.5, abs=1e-3), None)
    assert curve.seeds == (2, 1)


def test_the_overview_counts_verdicts_and_names_what_waits(tmp_path):
    experiment = EXPERIMENTS["fig:fix_vs_ann"]
    write_results(tmp_path, experiment.slug, [row(89.5)], "command")
    page = render_overview(rows_in(tmp_path))
    assert f"| {experiment.chapter} | 0 | 0 | 0 | {len(experiment.claims)} |" in page
    assert page.count("**open**") == len(experiment.claims)
    assert "[`fig:fix_vs_ann`](fig-fix_vs_ann.md)" in page
    assert "`fig:fashion`" in page.rpartition("## Without runs so far")[2]
