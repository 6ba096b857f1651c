"""Parts of a mark, carved back to the deepest level of capsules."""

import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import UserError
from torchcaps.core.types import Capsules, LayerTrace
from torchcaps.layers import LocalConvCaps2d
from torchcaps.models import create_model
from torchcaps.parse import (
    carriers,
    carriers_obstacle,
    carriers_on_image,
    measure_evenness,
    silence_carriers,
)
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


@pytest.mark.parametrize("classes", [1, 2])
def test_marks_of_any_number_of_classes_add_up_to_one(classes):
    network = create_model("segcaps_tiny_test", reconstruction=False, num_classes=classes).double().eval()
    layers = network(torch.rand(1, 1, 16, 16).double(), return_routing=True).layers
    found = carriers(network, layers, marks())
    assert_close(found.through_deepest + found.skipped + found.bias, torch.ones(1).double())


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


def test_a_capsule_lies_in_the_middle_of_what_it_sees(network):
    """The gradient of its pose is the oracle."""
    images = torch.rand(1, 1, 64, 64).double().requires_grad_()
    layers = network(images, return_routing=True).layers
    deepest = layers[-len(network.routed_levels().up) - 1].routed.poses
    for row, column in ((7, 5), (8, 10)):
        (seen,) = torch.autograd.grad(deepest[0, row, column].sum(), images, retain_graph=True)
        middle = [float(seen[0, 0].any(axis).nonzero().double().mean()) for axis in (1, 0)]
        parts = torch.zeros(1, 16, 16, 3).double()
        parts[0, row, column, 1] = 1
        heat = carriers_on_image(network, parts, (64, 64))[0]
        places = torch.arange(64).double()
        assert float((heat.sum(1) * places).sum() / heat.sum()) == pytest.approx(middle[0])
        assert float((heat.sum(0) * places).sum() / heat.sum()) == pytest.approx(middle[1])


def test_evenness_is_that_of_the_positions_that_carry_something(network):
    """The class layer reads single pixels: the layer below carries a marked pixel at that pixel alone."""
    marked = torch.zeros(1, 16, 16, dtype=torch.bool)
    marked[0, 3, 11] = True
    layers = network(torch.rand(1, 1, 16, 16).double(), return_routing=True).layers
    found = carriers(network, layers, marked)
    assert found.evenness[-1] == measure_evenness(layers[-2].routed.coupling[:, 3, 11])
    even, decided = (measure_evenness(torch.tensor([[row]])) for row in ([0.5, 0.5], [0.9, 0.1]))
    assert found._replace(evenness=(even, even)).hardly_routes
    assert not found._replace(evenness=(even, decided)).hardly_routes


def test_leaving_out_a_capsule_that_carries_all_changes_the_mark_and_hooks_are_removed(network):
    images = torch.rand(1, 1, 16, 16).double()
    before = network(images).activations
    parts = carriers(network, network(images, return_routing=True).layers, marks()).parts
    found = silence_carriers(network, images, marks(), parts)
    assert found.before == pytest.approx(float(before[:, 0][marks()].detach().mean()))
    assert found.without_strongest != found.before
    assert 1 <= found.capsules <= found.reachable // 10 + 1
    assert_close(network(images).activations, before)


def marked_without(network, images, places):
    """The mean activation of marked pixels where the deepest capsules at these places are zero."""

    def drop(module, arguments, routed):
        kept = torch.ones(1, 4, 4, 3).double()
        for place in places:
            kept[0][place] = 0
        return routed._replace(poses=routed.poses * kept[..., None], activations=routed.activations * kept)

    handle = network.routed_levels().down[-1].register_forward_hook(drop)
    mean = float(network(images).activations.amax(1)[marks()].mean())
    handle.remove()
    return mean


@torch.no_grad()
def test_marks_without_the_strongest_capsules_are_those_of_a_network_that_lacks_them(network):
    images = torch.rand(1, 1, 16, 16).double()
    parts = torch.zeros(1, 4, 4, 3).double()
    parts[0, 1, 2, 0], parts[0, 2, 1, 1], parts[0, 0, 0, 2] = 0.9, 0.05, -0.5
    found = silence_carriers(network, images, marks(), parts)
    assert (found.capsules, found.reachable) == (1, 3)
    expected = marked_without(network, images, [(1, 2, 0)])
    assert found.without_strongest == pytest.approx(expected)
    assert found.fall == pytest.approx(found.before - expected)
    with pytest.raises(UserError, match="no capsule of the deepest level"):
        silence_carriers(network, images, marks(), torch.zeros(1, 4, 4, 3).double())


@torch.no_grad()
def test_random_capsules_are_drawn_from_those_that_reach_the_mark(network):
    images, parts = torch.rand(1, 1, 16, 16).double(), torch.zeros(1, 4, 4, 3).double()
    parts[0, 1, 2, 0] = 0.9
    alone = silence_carriers(network, images, marks(), parts)
    assert alone.without_random == pytest.approx(alone.without_strongest)  # there is no other one to draw
    parts[0, 2, 1, 1] = 0.5
    both = silence_carriers(network, images, marks(), parts)
    other = silence_carriers(network, images, marks(), parts * torch.where(parts == 0.9, 0.1, 1.0))
    # sixteen draws of one of two: a mean of the two answers in sixteenths
    share = (both.without_random - other.without_strongest) / (
        both.without_strongest - other.without_strongest
    )
    assert 0 < share < 1
    assert 16 * share == pytest.approx(round(16 * share), abs=1e-6)


@torch.no_grad()
def test_capsules_that_do_not_reach_the_mark_are_never_among_the_strongest(network):
    """Most pull the other way, so that parts of zero are larger than those of all reachable ones but one."""
    images, parts = torch.rand(1, 1, 16, 16).double(), torch.zeros(1, 4, 4, 3).double()
    parts[0, 1:3] = -torch.linspace(0.2, 0.9, 24).double().view(2, 4, 3)
    parts[0, 2, 2, 1] = 0.5
    found = silence_carriers(network, images, marks(), parts)
    assert (found.capsules, found.reachable) == (2, 24)
    expected = marked_without(network, images, [(2, 2, 1), (1, 0, 0)])  # the positive, the least negative
    assert found.without_strongest == pytest.approx(expected)


@torch.no_grad()
def test_a_tenth_of_the_capsules_that_reach_the_mark_is_left_out(network):
    images, parts = torch.rand(1, 1, 16, 16).double(), torch.zeros(48).double()
    parts[:36] = torch.linspace(0.1, 1, 36)
    found = silence_carriers(network, images, marks(), parts.view(1, 4, 4, 3))
    assert (found.capsules, found.reachable) == (4, 36)  # 3.6, to the nearest


@torch.no_grad()
def test_a_parent_that_nobody_votes_for_carries_nothing():
    """A sum of zero has no direction; its parts are zero, and those of others stay what they are."""
    network = create_model(
        "segcaps_tiny_test", reconstruction=False, routing={"name": "dynamic", "bias": False}
    )
    layer = network.double().eval().routed_levels().up[0]
    layer.weight[:, :4] = 0.0  # one of two types of parents
    layers = network(torch.rand(1, 1, 16, 16).double(), return_routing=True).layers
    found = carriers(network, layers, marks())
    assert found.parts.isfinite().all()
    assert_close(found.through_deepest + found.skipped + found.bias, torch.ones(1).double())


def test_networks_without_capsules_and_traces_without_couplings_are_refused(network):
    assert "no levels of capsules" in carriers_obstacle(create_model("unet_tiny_test"))
    with pytest.raises(UserError, match="no levels of capsules"):
        carriers(create_model("unet_tiny_test"), (), marks())
    with pytest.raises(UserError, match="return_routing"):
        carriers(network, (), marks())
    layers = network(torch.rand(1, 1, 16, 16).double(), return_routing=True).layers
    with pytest.raises(UserError, match="nothing to carry"):
        carriers(network, layers, torch.zeros(1, 16, 16, dtype=torch.bool))
