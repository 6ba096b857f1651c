import re
from pathlib import Path

import pytest
from experiments.made_rows import a_row

from torchcaps.core import UserError
from torchcaps.experiments import (
    EXPERIMENTS,
    LABELS,
    annealing,
    backbones,
    find_experiment,
    list_experiments,
    lung,
    pose,
    rem,
    uav,
)
from torchcaps.experiments.catalogue import WITHOUT_RUNS
from torchcaps.experiments.reproduction import render_reproduction, render_totals
from torchcaps.experiments.results.page import render_page

TABLE = "tab:mnist-pruned-params"
PRUNED = "tab:performance-dynamiccaps"


def test_every_label_of_the_thesis_has_an_experiment_or_a_reason(tmp_path):
    assert len(LABELS) == 30
    assert {label for label in LABELS if label not in EXPERIMENTS.names()} == set(WITHOUT_RUNS)
    listed = {progress.label: progress for progress in list_experiments(tmp_path, tmp_path, tmp_path)}
    assert all(listed[label].needs for label in LABELS)


def test_packages_name_the_number_of_their_chapter():
    packages = {package.CHAPTER: package for package in (annealing, backbones, rem, uav, pose, lung)}
    for number, chapter in enumerate(dict.fromkeys(LABELS.values()), start=4):  # three come before them
        assert packages[chapter].__doc__.startswith(f"Chapter {number}, ")


def test_a_label_without_data_is_refused_with_its_reason():
    with pytest.raises(UserError, match="smallNORB cannot be downloaded"):
        find_experiment("tab:novelviewpoints_full_original")


def test_a_label_that_is_built_says_why_it_has_no_runs():
    page = render_reproduction(lambda label: [])
    assert "`tab:novelviewpoints`. No runs so far (the files of smallNORB cannot be downloaded here)" in page


def rows_of(label):
    found = [
        a_row("DR-CapsNet+Q", "entropy", 9.5, thesis=9.53, seeds=3),
        a_row("DR-CapsNet+Q", "quantized_accuracy", 90.0, thesis=99.56, seeds=3),
        a_row("DR-CapsNet+Q", "keys", 8000, seeds=3),
    ]
    return found if label == TABLE else []


def test_figures_for_and_against_are_counted():
    text = render_totals(rows_of)
    assert "1 have runs here" in text
    assert "2 of our numbers stand beside a printed figure: 1 confirmed, 1 not confirmed and 0 open" in text


def test_counts_that_no_training_changes_are_told_apart():
    whole = a_row("DR-CapsNet+Q", "parameters_left", 6_804_384, thesis=6_800_000, seeds=3)
    measured = a_row("DR-CapsNet+Q", "entropy", 9.5, thesis=9.53, seeds=3, spread=0.01)
    rows = {TABLE: [measured, whole], PRUNED: [a_row("a", "bottleneck", 2048, thesis=2048)]}
    text = render_totals(lambda label: rows.get(label, []))
    assert "3 of our numbers stand beside a printed figure: 3 confirmed" in text
    assert "2 of the confirmed ones are counts" in text


def test_figures_of_other_data_are_shown_and_not_judged():
    label, name = "tab:lsl-time_to_convergence_and_error", "Caps, D=16, bayesian"
    found = [a_row(name, "updates_to_convergence", 13.1, thesis=35.2, seeds=3)]
    flown = {label: found}
    totals = render_totals(lambda label: flown.get(label, []))
    assert (
        "0 of our numbers stand beside a printed figure: 0 confirmed, 0 not confirmed and 0 open; 1 more"
        in totals
    )
    assert "| 35.2 | 13.1 ± 0.0 | 3 | full | other data |" in render_reproduction(
        lambda label: flown.get(label, [])
    )
    page = render_page(EXPERIMENTS[label], lambda label: found)
    assert "of other data than ours, and not judged: updates to convergence." in page
    assert f"{name}, updates to convergence: **" not in page


@pytest.mark.parametrize("label", LABELS)
def test_figures_whose_data_differ_are_of_metrics_that_exist(label):
    if label in EXPERIMENTS.names():
        experiment = EXPERIMENTS[label]
        assert set(experiment.other_data) <= set(experiment.metrics)
        says_so = "cannot be compared" in " ".join(experiment.deviations)
        printed = {metric for setting in experiment.settings for metric in setting.thesis}
        assert not says_so or printed <= set(experiment.other_data)


@pytest.mark.parametrize("label", EXPERIMENTS.names())
def test_what_is_counted_is_a_metric_that_the_thesis_prints(label):
    experiment = EXPERIMENTS[label]
    printed = {metric for setting in experiment.settings for metric in setting.thesis}
    assert set(experiment.counted) <= printed & set(experiment.metrics) - set(experiment.other_data)


def test_the_page_sets_thesis_ours_and_verdict_side_by_side_for_every_label():
    page = render_reproduction(rows_of)
    assert "| DR-CapsNet+Q | entropy, bits | 9.53 | 9.50 ± 0.00 | 3 | full | confirmed |" in page
    assert "| 99.56 | 90.00 ± 0.00 | 3 | full | not confirmed |" in page
    assert "Without runs so far: DR-CapsNet+REM; Efficient-CapsNet+Q" in page
    assert all(f"`{label}`" in page for label in LABELS)
    assert list(dict.fromkeys(re.findall(r"^## (.*)$", page, re.MULTILINE))) == list(
        dict.fromkeys(LABELS.values())
    )


def test_the_committed_page_has_the_block():
    text = (Path(__file__).parents[2] / "docs" / "reproduction.md").read_text()
    assert "<!-- reproduction -->\nOf 30 tables" in text
