"""The rules that decide the claims about lung nodules, on made rows, and what they are decided by."""

import pytest
import torch
from experiments.made_rows import a_row

from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.lung.claims import CLAIMS, METRIC, MODELS, SHARES, setting_name
from torchcaps.experiments.lung.figure import draw_figure
from torchcaps.experiments.lung.measure import measure_costs, summarise_dice
from torchcaps.experiments.records import Protocol
from torchcaps.models import create_model

THESIS = {
    "unet_5": (0.81, 0.79, 0.78),
    "unet_4": (0.74, 0.71, 0.68),
    "unet_3": (0.72, 0.69, 0.66),
    "segcaps_r3": (0.79, 0.77, 0.76),
}


def rows(dice, spread=0.005, seeds=3, budget="full"):
    found = [
        a_row(
            setting_name(model, share),
            METRIC,
            value,
            spread=spread if seeds > 1 else None,
            protocols=(Protocol(budget=budget, epochs=2),),
            seeds=seeds,
        )
        for model, values in dice.items()
        for share, value in zip(SHARES, values, strict=True)
    ]
    return lambda label: found


def verdicts(rows_of):
    return [claim.check(rows_of).verdict for claim in CLAIMS]


def test_the_figures_of_the_thesis_confirm_its_claims():
    assert verdicts(rows(THESIS)) == ["confirmed"] * 3


def test_each_claim_can_come_out_against_it():
    against = {
        **THESIS,
        "unet_3": (0.80, 0.80, 0.80),
        "unet_5": (0.70, 0.70, 0.70),
    }
    assert verdicts(rows(against)) == ["not confirmed"] * 3


def test_a_protocol_that_is_too_short_leaves_claims_open():
    assert verdicts(rows(THESIS, budget="quick")) == ["open"] * 3


def test_differences_within_the_noise_of_seeds_decide_nothing():
    """The losses differ by 0.03; four deviations of 0.05 over 3 seeds make a standard error of 0.058."""
    assert verdicts(rows(THESIS, spread=0.05)) == ["open"] * 3


def test_missing_rows_and_single_seeds_leave_claims_open():
    assert verdicts(rows({})) == ["open"] * 3
    assert verdicts(rows(THESIS, seeds=1)) == ["open"] * 3


def test_the_figure_is_drawn():
    assert draw_figure(rows(THESIS)(""))[1:4] == b"PNG"


def test_every_run_of_a_network_takes_as_many_steps_as_any_other():
    experiment = EXPERIMENTS["tab:lung-results"]
    for budget in ("quick", "full"):
        planned = list(experiment.planned(budget, seeds=1))
        products = {
            run.recipe.epochs * share for run, share in zip(planned, SHARES * len(MODELS), strict=True)
        }
        assert len(products) == 1


def test_dice_is_summarised_over_regions_and_patients():
    found = summarise_dice({"a": [0.5, 1.0], "b": [0.0]})
    assert found["region_dice"] == pytest.approx(0.5)
    assert found["region_dice_low"] == pytest.approx(0.0)
    assert found["region_dice_high"] == pytest.approx(0.75)
    assert found["missed_share"] == pytest.approx(1 / 3)


def test_costs_are_measured_where_the_network_is():
    assert set(measure_costs(create_model("unet_tiny_test"), torch.device("cpu"))) == {"cpu_ms_1"}


@pytest.mark.gpu
def test_on_a_gpu_memory_and_steps_are_measured_too():
    found = measure_costs(create_model("segcaps_tiny_test"), torch.device("cuda"))
    assert set(found) == {"gpu_ms_1", "gpu_memory_gb", "step_ms"}
