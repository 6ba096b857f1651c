import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torchcaps.core import UserError
from torchcaps.layers.backbone import create_trunk
from torchcaps.prune import Target, TrunkCost, draw_widths, even_widths
from torchcaps.prune.structured import check_reachable, even_ratio, usual_range, widths_at


def cost_of(name, side=64):
    with torch.device("meta"):
        trunk = create_trunk(name)
    return TrunkCost(trunk, side)


@pytest.mark.parametrize("name", ["resnet50", "mobilenetv1"])
@pytest.mark.parametrize("share", [0.75, 0.5, 0.25])
def test_every_draw_meets_the_target_within_its_range(name, share):
    cost = cost_of(name)
    drawn = draw_widths(cost, Target(share=share), 20, seed=3)
    widths = torch.tensor(drawn.widths)
    assert len(set(drawn.widths)) == 20
    assert ((cost.share(widths) - share).abs() <= 0.005).all()
    assert not drawn.is_narrowed
    removed = cost.full - widths
    assert (removed >= 0).all()
    assert (removed <= usual_range(share) * cost.full).all()
    assert (removed.double() / cost.full).std(0).min() > 0.02  # groups differ, and so do the draws


@pytest.mark.parametrize(
    ("share", "highest"), [(0.75, 0.4), (0.5, 0.7), (0.25, 0.8), (1.0, 0.0), (0.625, 0.55)]
)
def test_ranges_are_the_published_ones(share, highest):
    assert usual_range(share) == pytest.approx(highest)


def test_ratios_are_uniform():
    """Without a target the removed shares of a wide group have the moments of a uniform law."""
    cost = cost_of("resnet50")
    drawn = draw_widths(cost, Target(share=0.5, tolerance=1.0, highest=0.6), 4000, seed=0)
    ratios = 1 - torch.tensor(drawn.widths)[:, -1] / cost.full[-1]
    assert ratios.mean() == pytest.approx(0.3, abs=0.01)
    assert ratios.var() == pytest.approx(0.6**2 / 12, rel=0.05)


def test_the_first_candidates_do_not_depend_on_how_many_are_asked_for():
    cost = cost_of("resnet_small")
    few, many = (draw_widths(cost, Target(share=0.5), count, seed=1).widths for count in (3, 200))
    assert many[:3] == few
    assert draw_widths(cost, Target(share=0.5), 3, seed=2).widths != few


def test_a_range_that_hardly_ever_meets_the_target_is_narrowed():
    drawn = draw_widths(cost_of("resnet50"), Target(share=0.1), 5, seed=0)
    assert drawn.is_narrowed
    assert drawn.lowest > 0.3
    assert drawn.highest == pytest.approx(usual_range(0.1))
    assert len(drawn.widths) == 5
    high = draw_widths(cost_of("resnet50"), Target(share=0.9, highest=0.9), 5, seed=0)
    assert high.is_narrowed
    assert (high.lowest, round(high.highest, 1)) == (0.0, 0.1)


def test_all_of_the_flops_is_the_whole_trunk():
    cost = cost_of("resnet_tiny")
    assert draw_widths(cost, Target(share=1.0), 9, seed=0).widths == [tuple(cost.full.tolist())]
    assert even_widths(cost, Target(share=1.0)) == tuple(cost.full.tolist())


@settings(max_examples=8, deadline=None)
@given(share=st.floats(0.12, 1.0))
def test_one_ratio_for_all_groups_comes_near_the_target(share):
    cost = cost_of("resnet50")
    widths = torch.tensor([even_widths(cost, Target(share=share))])
    assert float(cost.share(widths)) == pytest.approx(share, abs=0.003)
    exact = cost.full * (1 - even_ratio(cost, share))
    assert (widths - exact).abs().max() <= 1


@settings(max_examples=20, deadline=None)
@given(ratio=st.floats(0, 0.99), last=st.integers(1, 32))
def test_what_is_removed_is_rounded_down_and_something_stays(ratio, last):
    cost = cost_of("resnet_tiny")
    ratios = torch.full((1, len(cost.full)), ratio, dtype=torch.float64)
    (widths,) = widths_at(cost, ratios, Target(share=0.5, last=last)).tolist()
    by_hand = [width - int(ratio * width) for width in cost.full.tolist()]
    assert widths == [*by_hand[:-1], max(by_hand[-1], last)]


@pytest.mark.parametrize("share", [0.75, 0.5])
def test_widths_may_be_multiples_of_eight(share):
    cost = cost_of("resnet50")
    drawn = draw_widths(cost, Target(share=share, multiple=8), 10, seed=3)
    widths = torch.tensor(drawn.widths)
    assert (widths % 8 == 0).all()
    assert (widths <= cost.full).all()
    assert ((cost.share(widths) - share).abs() <= 0.005).all()
    narrow = cost_of("resnet_tiny")
    (few,) = widths_at(narrow, torch.full((1, len(narrow.full)), 0.9), Target(share=0.5, multiple=8)).tolist()
    assert all(width >= 8 for width, full in zip(few, narrow.full.tolist(), strict=True) if full >= 8)


def test_what_a_head_needs_is_rounded_up_to_a_multiple():
    cost = cost_of("resnet_tiny")
    ratios = torch.full((1, len(cost.full)), 0.9, dtype=torch.float64)
    (widths,) = widths_at(cost, ratios, Target(share=0.5, multiple=8, last=9)).tolist()
    assert widths[-1] == 16


def test_impossible_targets_are_explained():
    cost = cost_of("resnet_tiny")
    with pytest.raises(
        UserError, match=r"10.0% of the FLOPs cannot be reached: with at most 50% .* are left"
    ):
        check_reachable(cost, Target(share=0.1, highest=0.5))
    with pytest.raises(UserError, match="ends in 32 channels; its head needs 40"):
        even_widths(cost, Target(share=0.5, last=40))
    assert even_widths(cost, Target(share=0.8, last=32))[-1] == 32
    with pytest.raises(UserError, match="multiples of a whole number from 1, got 0"):
        Target(share=0.5, multiple=0)
    with pytest.raises(UserError, match=r"none of [\d,]+ draws came within 1e-09"):
        draw_widths(cost, Target(share=0.50001, tolerance=1e-9), 1, seed=0)
    for share in (0.0, -0.5, 1.5):
        with pytest.raises(UserError, match="must lie above 0 and be at most 1"):
            Target(share=share)
    with pytest.raises(UserError, match="highest ratio must lie in"):
        Target(share=0.5, highest=1.0)


@pytest.mark.parametrize("multiple", [1, 4, 5])
def test_a_width_is_the_nearest_multiple_that_its_group_has(multiple):
    """By trying all multiples; a group that is narrower than one keeps what it keeps without."""
    full = (7, 3, 4, 15, 8, 9, 30)
    cost = TrunkCost(create_trunk("resnet_tiny", widths=full), 64)
    for ratio in torch.linspace(0, 0.95, 60, dtype=torch.float64).tolist():
        ratios = torch.full((1, len(full)), ratio, dtype=torch.float64)
        (widths,) = widths_at(cost, ratios, Target(share=0.5, multiple=multiple)).tolist()
        for width, whole in zip(widths, full, strict=True):
            left = max(whole - int(ratio * whole), 1)
            multiples = range(multiple, whole + 1, multiple) or [left]
            assert width == min(multiples, key=lambda each: (abs(each - left), -each))
