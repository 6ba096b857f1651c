"""Parts of a mark, carved back to the deepest level of capsules."""

import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import UserError
from torchcaps.core.types import Capsules, LayerTrace
from torchcaps.layers import LocalConvCaps2d
from torchcaps.models import create_model
from torchcaps.parse import carriers, carriers_obstacle, carriers_on_image, silence_carriers
from torchcaps.parse.carriers import carve


@pytest.fixture
def network():
    model = create_model("segcaps_tiny_test", reconstruction=False).double().eval()
    for name, weight in model.named_parameters():
        if "bias" in name:
            torch.nn.init.normal_(weight, std=0.1)
    return model


def marks(size=16):
    marked = torch.zeros(1, size, size, dtype=torch.bool)
    marked[:, 6:9, 7:10] = True
    return marked


def test_parts_skips_and_biases_add_up_to_one(network):
    layers = network(torch.rand(1, 1, 16, 16).double(), return_routing=True).layers
    found = carriers(network, layers, marks())
    assert_close(found.through_deepest + found.skipped + found.bias, torch.ones(1).double())
    assert found.parts.shape == (1, 4, 4, 3)
    assert len(found.evenness) == 3  # all layers above the deepest but that of one class


@torch.no_grad()
def test_a_part_is_what_a_child_adds_along_its_parent():
    """By loops over the window, where einsum and autograd have no say."""
    layer = LocalConvCaps2d(2, 3, 4, 5, kernel_size=3).double()
    poses = torch.rand(1, 4, 4, 2, 4).double()
    children = Capsules(poses, poses.norm(dim=-1))
    trace = LayerTrace(children, layer(children))
    wanted = torch.zeros(1, 4, 4, 3).double()
    wanted[0, 1, 2] = torch.tensor([0.2, 0.3, 0.5])
    found, bias = carve(layer, trace, wanted)
    expected = torch.zeros(4, 4, 2).double()
    coupling, kernel = trace.routed.coupling, layer.weight.view(3, 5, 4, 3, 3)
    votes, _ = layer.cast(children)
    offset = getattr(layer.routing, "bias", torch.zeros(3, 5).double())
    total = 0.0
    for parent in range(3):
        shares = coupling[0, 1, 2, :, parent, None]
        pooled = (shares * votes[0, 1, 2, :, parent]).sum(0) + offset[parent]
        direction = pooled / pooled.norm()
        total += float(wanted[0, 1, 2, parent] * (direction @ offset[parent]) / pooled.norm())
        for row in range(3):
            for column in range(3):
                for t in range(2):
                    added = kernel[parent, :, :, row, column] @ poses[0, row, 1 + column, t]
                    part = coupling[0, 1, 2, t, parent] * (direction @ added) / pooled.norm()
                    expected[row, 1 + column, t] += wanted[0, 1, 2, parent] * part
    assert_close(found[0], expected)
    assert float(bias) == pytest.approx(total)


def test_capsules_that_cannot_reach_the_mark_carry_nothing(network):
    marked = torch.zeros(1, 64, 64, dtype=torch.bool)
    marked[:, 2:4, 2:4] = True
    layers = network(torch.rand(1, 1, 64, 64).double(), return_routing=True).layers
    parts = carriers(network, layers, marked).parts
    assert not parts[0, 10:, 10:].any()
    assert parts[0, 0, 0].any()


def test_the_map_lies_where_the_mark_lies(network):
    marked = torch.zeros(1, 64, 64, dtype=torch.bool)
    marked[:, 40:44, 20:24] = True
    layers = network(torch.rand(1, 1, 64, 64).double(), return_routing=True).layers
    heat = carriers_on_image(network, carriers(network, layers, marked).parts, (64, 64))[0]
    rows, columns = torch.meshgrid(torch.arange(64.0), torch.arange(64.0), indexing="ij")
    assert float((heat * rows).sum() / heat.sum()) == pytest.approx(42, abs=6)
    assert float((heat * columns).sum() / heat.sum()) == pytest.approx(22, abs=6)


def test_leaving_out_a_capsule_that_carries_all_changes_the_mark_and_hooks_are_removed(network):
    images = torch.rand(1, 1, 16, 16).double()
    before = network(images).activations
    parts = carriers(network, network(images, return_routing=True).layers, marks()).parts
    found = silence_carriers(network, images, marks(), parts)
    assert found.before == pytest.approx(float(before[:, 0][marks()].detach().mean()))
    assert found.without_strongest != found.before
    assert 1 <= found.capsules <= found.reachable // 10 + 1
    assert_close(network(images).activations, before)


@torch.no_grad()
def test_marks_without_the_strongest_capsules_are_those_of_a_network_that_lacks_them(network):
    images = torch.rand(1, 1, 16, 16).double()
    parts = torch.zeros(1, 4, 4, 3).double()
    parts[0, 1, 2, 0], parts[0, 2, 1, 1], parts[0, 0, 0, 2] = 0.9, 0.05, -0.5
    found = silence_carriers(network, images, marks(), parts)
    assert (found.capsules, found.reachable) == (1, 3)

    def without_strongest(module, arguments, routed):
        kept = torch.ones(1, 4, 4, 3).double()
        kept[0, 1, 2, 0] = 0
        return routed._replace(poses=routed.poses * kept[..., None], activations=routed.activations * kept)

    handle = network.routed_levels().down[-1].register_forward_hook(without_strongest)
    expected = float(network(images).activations.amax(1)[marks()].mean())
    handle.remove()
    assert found.without_strongest == pytest.approx(expected)
    assert found.fall == pytest.approx(found.before - expected)
    with pytest.raises(UserError, match="no capsule of the deepest level"):
        silence_carriers(network, images, marks(), torch.zeros(1, 4, 4, 3).double())


def test_networks_without_capsules_and_traces_without_couplings_are_refused(network):
    assert "no levels of capsules" in carriers_obstacle(create_model("unet_tiny_test"))
    with pytest.raises(UserError, match="no levels of capsules"):
        carriers(create_model("unet_tiny_test"), (), marks())
    with pytest.raises(UserError, match="return_routing"):
        carriers(network, (), marks())
    layers = network(torch.rand(1, 1, 16, 16).double(), return_routing=True).layers
    with pytest.raises(UserError, match="nothing to carry"):
        carriers(network, layers, torch.zeros(1, 16, 16, dtype=torch.bool))
