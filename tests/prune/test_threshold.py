import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from torchcaps.prune import Units, prune_to_loss


class Quadratic:
    """Weights at the minimum of a separable convex loss, so that cutting more always costs more."""

    def __init__(self, values, curvatures):
        self.weight = nn.Parameter(torch.tensor(values, dtype=torch.float64))
        self.target = self.weight.detach().clone()
        self.curvature = torch.tensor(curvatures, dtype=torch.float64)
        self.calls = 0

    def loss(self) -> float:
        self.calls += 1
        return float((self.curvature * (self.weight.detach() - self.target).square()).sum())

    @property
    def units(self) -> Units:
        norm = self.weight.detach().abs()
        return Units([self.weight], [norm], norm.flatten())


def brute_force(problem: Quadratic, limit: float) -> Tensor:
    """The weights after every possible threshold was tried."""
    best = problem.target.clone()
    for threshold in sorted(set(problem.target.abs().tolist())):
        cut = torch.where(problem.target.abs() <= threshold, 0.0, problem.target)
        if float((problem.curvature * (cut - problem.target).square()).sum()) <= limit:
            best = cut
    return best


values = st.lists(
    st.tuples(st.floats(-3, 3, allow_subnormal=False), st.floats(0.1, 2)), min_size=1, max_size=40
)


@given(values, st.floats(0, 20), st.one_of(st.just(0.0), st.floats(1e-4, 10)))
def test_the_search_finds_what_trying_everything_finds(pairs, limit, start):
    problem = Quadratic(*zip(*pairs, strict=True))
    expected = brute_force(problem, limit)
    cut = prune_to_loss(problem.units, problem.loss, limit, start=start, max_evaluations=200)
    assert torch.equal(problem.weight.detach(), expected)
    assert problem.loss() <= limit
    assert cut.evaluations == problem.calls - 1  # the loss above is one
    assert cut.pruned == int((problem.target != 0).sum() - (expected != 0).sum())


def test_nothing_is_cut_where_every_candidate_hurts():
    problem = Quadratic([1.0, -2.0, 3.0], [1.0, 1.0, 1.0])
    cut = prune_to_loss(problem.units, problem.loss, 0.0)
    assert cut.threshold == 0
    assert cut.pruned == 0
    assert torch.equal(problem.weight.detach(), problem.target)


def test_a_loss_that_is_no_number_is_too_high():
    problem = Quadratic([1.0, -2.0, 3.0], [1.0, 1.0, 1.0])
    assert prune_to_loss(problem.units, lambda: float("nan"), 1.0).pruned == 0


def test_everything_can_go():
    problem = Quadratic([1.0, -2.0, 3.0], [1.0, 1.0, 1.0])
    cut = prune_to_loss(problem.units, problem.loss, 100.0)
    assert cut.threshold == 3.0
    assert not problem.weight.any()
    again = prune_to_loss(problem.units, problem.loss, 100.0)
    assert again == (0.0, 0, 0.0, 0)


def test_the_number_of_evaluations_is_bounded_and_a_warm_start_saves_some():
    random = torch.Generator().manual_seed(0)
    values = torch.randn(20_000, generator=random, dtype=torch.float64)
    limit = float(values[values.abs() < 0.05].square().sum())
    cold = Quadratic(values.tolist(), [1.0] * len(values))
    found = prune_to_loss(cold.units, cold.loss, limit)
    assert found.evaluations <= 20
    assert found.threshold == pytest.approx(0.05, rel=0.01)
    warm = Quadratic(values.tolist(), [1.0] * len(values))
    assert prune_to_loss(warm.units, warm.loss, limit, start=0.045).evaluations < found.evaluations
    short = Quadratic(values.tolist(), [1.0] * len(values))
    rough = prune_to_loss(short.units, short.loss, limit, max_evaluations=5)
    assert rough.evaluations == 5
    assert short.loss() <= limit


def thresholds_tried(start, good_up_to, norms):
    """What a search tries, in order, when every threshold up to `good_up_to` is good."""
    weight = nn.Parameter(norms.clone())
    tried = []

    def loss() -> float:
        tried.append(float(norms[weight == 0].max()))
        return float(tried[-1] > good_up_to)

    prune_to_loss(Units([weight], [norms], norms), loss, 0.5, start=start)
    return tried


def test_a_search_begins_at_the_mean_and_a_warm_one_doubles_or_halves():
    norms = torch.arange(1, 1001, dtype=torch.float64)
    assert thresholds_tried(0.0, 10, norms)[0] == 500  # the mean is 500.5
    assert thresholds_tried(8.0, 100, norms)[:6] == [8, 16, 32, 64, 128, 96]
    assert thresholds_tried(800.0, 60, norms)[:6] == [800, 400, 200, 100, 50, 75]


def test_weights_keep_their_bits_when_the_loss_cannot_be_computed():
    problem = Quadratic([1.0, 1e-30, 3.0], [1.0, 1.0, 1.0])

    def broken() -> float:
        raise RuntimeError("no memory")

    with pytest.raises(RuntimeError, match="no memory"):
        prune_to_loss(problem.units, broken, 100.0)
    assert torch.equal(problem.weight.detach(), problem.target)


def test_units_are_cut_as_a_whole():
    weight = nn.Parameter(torch.tensor([[0.1, 0.1], [0.0, 5.0], [2.0, 2.0]]))
    norm = weight.detach().square().mean(1, keepdim=True).sqrt()
    prune_to_loss(Units([weight], [norm], norm.flatten()), lambda: float(-weight[2].sum()), -4.0)
    assert weight.tolist() == [[0, 0], [0, 5], [2, 2]]


@pytest.mark.parametrize(("limit", "left"), [(1e9, 3), (1.5, 2)])
def test_a_loss_that_no_cut_raises_is_left_alone_where_not_all_may_go(limit, left):
    """A network that has not begun to learn keeps its weights; one whose loss answers is cut as ever."""
    problem = Quadratic([1.0, -2.0, 3.0], [1.0, 1.0, 1.0])
    cut = prune_to_loss(problem.units, problem.loss, limit, may_cut_all=False)
    assert int(problem.weight.count_nonzero()) == left
    assert (cut.threshold, cut.pruned) == ((0.0, 0) if left == 3 else (1.0, 1))
