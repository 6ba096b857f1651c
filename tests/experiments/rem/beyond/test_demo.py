import pytest
from experiments.made_rows import assert_decided_both_ways

from torchcaps.experiments import EXPERIMENTS


@pytest.mark.parametrize(
    ("number", "larger"), [(0, r"as trained \| test_accuracy"), (1, r"as trained \| entropy")]
)
def test_what_the_demonstration_shows_can_be_refuted(number, larger):
    assert_decided_both_ways(EXPERIMENTS["beyond:demo"], number, larger)
