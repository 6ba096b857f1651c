import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from torchcaps.core import UserError, sides
from torchcaps.layers.backbone import TRUNKS, create_trunk
from torchcaps.prune import TrunkCost


def counted(name, widths, size, channels):
    with torch.device("meta"):
        trunk = create_trunk(name, in_channels=channels, widths=widths).eval()
    with FlopCounterMode(display=False) as counter:
        trunk(torch.empty(1, channels, *sides(size), device="meta"))
    return counter.get_total_flops() // 2


def cost_of(name, size=64, channels=3):
    with torch.device("meta"):
        trunk = create_trunk(name, in_channels=channels)
    return TrunkCost(trunk, size)


@pytest.mark.parametrize(
    ("trunk", "pruned", "giga"),
    [
        ("resnet50", "resnet50_flops75", 3.080),
        ("resnet50", "resnet50_flops50", 2.057),
        ("resnet50", "resnet50_flops25", 1.034),
        ("mobilenetv1", "mobilenetv1_flops50", 0.289),
    ],
)
def test_published_widths_cost_what_is_published(trunk, pruned, giga):
    widths = TRUNKS[pruned].widths
    macs = cost_of(trunk, 224).macs_of(widths) + 1000 * widths[-1]  # with the classifier of ImageNet
    assert macs / 1e9 == pytest.approx(giga, abs=5e-4)


@pytest.mark.parametrize("name", ["resnet_tiny", "resnet_small", "mobilenet_tiny", "mobilenet_small"])
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_the_arithmetic_agrees_with_a_counted_pass(name, data):
    full = TRUNKS[name].widths
    widths = [data.draw(st.integers(1, width)) for width in full]
    side, channels = st.integers(32, 100), data.draw(st.sampled_from([1, 3]))
    size = data.draw(side | st.tuples(side, side))
    assert cost_of(name, size, channels).macs_of(widths) == counted(name, widths, size, channels)


def test_a_trunk_that_hides_its_groups_is_refused():
    with pytest.raises(UserError, match="Conv2d does not say which of its channels belong together"):
        TrunkCost(nn.Conv2d(3, 8, 3), 64)
