import pytest

from torchcaps.prune import Plateau


@pytest.mark.parametrize(
    ("patience", "losses", "expected"),
    [
        (-1, [1.0, 0.5, 0.6], [True, True, True]),
        (2, [1.0, 0.5, 0.499, 0.498, 0.497, 0.496], [False, False, False, True, False, True]),
        (2, [1.0, 0.995, 0.98, 0.985, 0.96, 0.96, 0.97], [False] * 6 + [True]),
        (1, [1.0, 2.0, 2.0, 1.9], [False, True, True, False]),
    ],
)
def test_pruning_is_due_when_the_loss_has_not_fallen_by_a_percent(patience, losses, expected):
    plateau = Plateau()
    assert [plateau.is_reached(loss, patience) for loss in losses] == expected
