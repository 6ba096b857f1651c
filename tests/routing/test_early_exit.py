import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from torchcaps.core import UserError
from torchcaps.core.seeding import generator
from torchcaps.routing.dynamic import dynamic_routing
from torchcaps.routing.early_exit import settled_dynamic_routing

from refusal import REFUSED


def votes(scale=1.0, batch=5, dtype=torch.float32):
    drawn = torch.randn(batch, 12, 4, 3, generator=generator(0, "votes"), dtype=torch.float64)
    agreeing = torch.linspace(0, 4, batch, dtype=torch.float64).view(-1, 1, 1, 1)  # some settle before others
    return (scale * (drawn + agreeing * drawn[:, :1])).to(dtype)


def activations(given):
    return given.new_ones(given.shape[:2])


BIAS = torch.randn(4, 3, generator=generator(0, "bias"))


@given(iterations=st.integers(1, 8), leaky=st.booleans(), scale=st.sampled_from([0.1, 1.0, 5.0]))
def test_without_tolerance_it_is_dynamic_routing_to_the_bit(iterations, leaky, scale):
    ours = votes(scale)
    settled = settled_dynamic_routing(
        ours, activations(ours), iterations=iterations, tolerance=0.0, leaky=leaky, bias=BIAS
    )
    fixed = dynamic_routing(ours, activations(ours), iterations=iterations, leaky=leaky, bias=BIAS)
    assert torch.equal(settled.routed.poses, fixed.poses)
    assert torch.equal(settled.routed.coupling, fixed.coupling)
    assert settled.rounds.tolist() == [iterations] * len(ours)
    nothing = torch.zeros_like(ours)  # its couplings never move, which a tolerance of zero does not excuse
    still = settled_dynamic_routing(nothing, activations(nothing), iterations=iterations, tolerance=0.0)
    assert still.rounds.tolist() == [iterations] * len(ours)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("is_mixed", [False, True])
def test_in_mixed_and_in_half_precision_too(dtype, is_mixed):
    ours = votes(dtype=dtype)
    with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):
        settled = settled_dynamic_routing(ours, activations(ours), iterations=5, tolerance=0.0, bias=BIAS)
        fixed = dynamic_routing(ours, activations(ours), iterations=5, bias=BIAS)
    for mine, theirs in zip(settled.routed, fixed, strict=True):
        assert mine.dtype == dtype
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-2, 0.1])
def test_every_sample_gets_the_fixed_routing_of_its_own_rounds(tolerance):
    ours = votes(dtype=torch.float64)
    settled = settled_dynamic_routing(ours, activations(ours), tolerance=tolerance)
    assert len(set(settled.rounds.tolist())) > 1
    for number, rounds in enumerate(settled.rounds.tolist()):
        alone = ours[number : number + 1]
        before, last = (
            dynamic_routing(alone, activations(alone), iterations=r).coupling
            for r in (max(rounds - 1, 1), rounds)
        )
        assert_close(settled.routed.coupling[number : number + 1], last)
        assert rounds == 50 or (last - before).abs().max() < tolerance


def test_a_sample_does_not_see_its_neighbours():
    ours = votes(dtype=torch.float64)
    together = settled_dynamic_routing(ours, activations(ours))
    for number in range(len(ours)):
        alone = settled_dynamic_routing(ours[number : number + 1], activations(ours)[number : number + 1])
        assert alone.rounds[0] == together.rounds[number]
        assert_close(alone.routed.poses[0], together.routed.poses[number])


def test_a_large_tolerance_stops_after_the_first_change():
    ours = votes()
    assert settled_dynamic_routing(ours, activations(ours), tolerance=1.0).rounds.tolist() == [2] * len(ours)


def test_bad_input_is_refused():
    ours = votes()
    with pytest.raises(UserError, match="tolerance must not be negative"):
        settled_dynamic_routing(ours, activations(ours), tolerance=-0.1)
    with pytest.raises(UserError, match="iterations"):
        settled_dynamic_routing(ours, activations(ours), iterations=0)
    with pytest.raises(REFUSED):
        settled_dynamic_routing(ours[0], activations(ours)[0])
