import pytest

from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.plan import Claim, Finding, our_claim

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
