import pytest
from experiments.made_rows import rows_of_all

from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.plan import Claim, Finding, our_claim

# claims that are decided by more than the mean of each row, and tested with their chapters
BY_DETAILS = {
    *("fig:annealing", "fig:fix_vs_ann", "fig:fashion", "fig:cifar10"),
    *("fig:acc_vs_pp", "fig:cij_nopruning_all", "fig:mnist-dictionary-test", "fig:quantization levels"),
    *("tab:lsl-time_to_convergence_and_error", "beyond:uav-calibration", "beyond:uav-routing"),
    *("beyond:uav-steps", "beyond:uav-storage", "beyond:pruned-groups", "tab:lung-results"),
}
REPEATS_THE_CHAPTER = "beyond:flops-imagenette"  # what the thesis says of trunks, on photographs


@pytest.mark.parametrize("verdict", ["confirmed", "not confirmed", "open"])
def test_only_a_claim_of_ours_goes_beyond_the_thesis(verdict):
    finding = Finding(verdict, "of the rows")
    assert Claim("It is so.", lambda rows_of: finding).check(list) == finding
    verdict_on_ours, because = our_claim("It is so.", lambda rows_of: finding).check(list)
    assert verdict_on_ours == ("beyond" if verdict == "confirmed" else verdict)
    assert because == finding.because


def test_a_claim_that_is_called_ours_is_no_claim_of_the_thesis():
    for label in EXPERIMENTS.names():
        is_outside = label.startswith("beyond:") and label != REPEATS_THE_CHAPTER
        for claim in EXPERIMENTS[label].claims:
            is_called_ours = is_outside or claim.text.startswith(("Ours:", "Beyond the thesis:"))
            assert claim.is_ours or not is_called_ours, claim.text


@pytest.mark.parametrize("label", EXPERIMENTS.names())
def test_every_claim_is_open_without_runs(label):
    assert {claim.check(lambda label: []).verdict for claim in EXPERIMENTS[label].claims} <= {"open"}


@pytest.mark.parametrize("label", sorted(set(EXPERIMENTS.names()) - BY_DETAILS))
def test_every_claim_speaks_of_settings_and_metrics_that_exist(label):
    """Rows of all that an experiment has decide its claims."""
    experiment, rows = EXPERIMENTS[label], rows_of_all(EXPERIMENTS[label])
    for claim in experiment.claims:
        assert claim.check(lambda asked: rows if asked == label else []).verdict != "open", claim.text


def test_claims_are_planned_with_seeds_that_can_decide_them():
    for label in EXPERIMENTS.names():
        experiment = EXPERIMENTS[label]
        assert experiment.seeds > 1 or not experiment.claims, label
