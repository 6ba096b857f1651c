import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from torchcaps.core import Capsules, UserError
from torchcaps.core.levels import even_levels
from torchcaps.layers import FcCaps
from torchcaps.layers.conv3d_routing import MapRouting
from torchcaps.layers.em_conv2d import PositionalEM
from torchcaps.models import create_model
from torchcaps.parse import (
    evened,
    parse_tree,
    quantizable_routings,
    quantization_indices,
    quantize,
    quantized,
)
from torchcaps.parse.quantize import keeps_even_share
from torchcaps.routing import RoutingShape, create_routing

FAMILIES = {  # routed layers that quantize
    "dr_capsnet": 1,
    "gamma_capsnet": 2,
    "deepcaps": 2,
    "efficient_capsnet": 1,
    "em_capsnet": 3,
    "effconv_capsnet": 2,
    "backbone_capsnet": 1,
    "parse_capsnet": 3,
}


def draw(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 300), st.lists(st.floats(-0.5, 1.5), min_size=1, max_size=40))
def test_indices_are_the_bins_of_the_thesis(levels, values):
    half = 0.5 / (levels - 1)
    edges = np.linspace(-half, 1 + half, levels + 1)
    clipped = np.clip(values, 0, 1)
    expected = np.digitize(clipped, edges) - 1
    is_clear = np.abs(clipped[:, None] - edges).min(1) > 1e-9  # on an edge, rounding decides
    found = quantization_indices(torch.tensor(values, dtype=torch.float64), levels).numpy()
    assert (found[is_clear] == expected[is_clear]).all()
    assert np.abs(found / (levels - 1) - clipped).max() <= half + 1e-9


def test_eleven_levels_are_tenths_and_half_goes_up():
    values = torch.tensor([-0.2, 0.0, 0.0499, 0.05, 0.14, 0.25, 0.96, 1.0, 1.3], dtype=torch.float64)
    assert quantization_indices(values, 11).tolist() == [0, 0, 0, 1, 1, 3, 10, 10, 10]
    assert_close(quantize(values, 11), quantization_indices(values, 11).double() / 10)


@pytest.mark.parametrize("levels", [2, 6, 11, 21, 128, 256, 257, 4096])
def test_quantizing_twice_is_quantizing_once(levels):
    once = quantize(torch.linspace(0, 1, 5001), levels)
    assert torch.equal(quantize(once, levels), once)
    assert len(once.unique()) == levels
    assert quantization_indices(once, levels).element_size() == (1 if levels <= 256 else 2)


@pytest.mark.parametrize(("kind", "levels"), [(torch.bfloat16, 201), (torch.float16, 1601)])
def test_half_precision_goes_to_the_nearest_level(kind, levels):
    couplings = torch.linspace(0, 1, 1001).to(kind)
    nearest = (couplings.double() * (levels - 1) + 0.5).floor()
    assert torch.equal(quantization_indices(couplings, levels).double(), nearest)
    assert torch.equal(quantize(couplings, levels), (nearest / (levels - 1)).to(kind))


@pytest.mark.parametrize("levels", [-1, 0, 1, 2**15 + 1])
def test_too_few_or_too_many_levels_are_refused(levels):
    with pytest.raises(UserError, match="levels must lie in 2"):
        quantize(torch.rand(3), levels)
    with pytest.raises(UserError, match="levels must lie in 2"), quantized(create_tiny("dr_capsnet"), levels):
        pass


def create_tiny(family):
    torch.manual_seed(0)
    return create_model(f"{family}_tiny_test").eval()


def images_for(model):
    return torch.rand(3, *model.image_shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_routes_quantized_and_goes_back(family):
    model = create_tiny(family)
    images = images_for(model)
    routings = quantizable_routings(model)
    assert len(routings) == FAMILIES[family]
    with torch.no_grad():
        before = model(images, return_routing=True)
        with quantized(model, 11):
            inside = model(images, return_routing=True)
            without_couplings = model(images)
        after = model(images, return_routing=True)
    for trace in inside.layers:
        steps = trace.routed.coupling * 10
        assert_close(steps, steps.round())
    assert torch.equal(without_couplings.activations, inside.activations)
    assert not torch.equal(before.layers[-1].routed.coupling, inside.layers[-1].routed.coupling)
    assert torch.equal(before.activations, after.activations)


@pytest.mark.parametrize("family", FAMILIES)
def test_very_many_levels_change_nothing(family):
    model = create_tiny(family).double()
    images = images_for(model).double()
    with torch.no_grad():
        plain = model(images)
        with quantized(model, 2**15):
            fine = model(images)
    assert_close(fine.activations, plain.activations, atol=2e-3, rtol=0)


def squashed(s):
    squared = (s**2).sum(-1, keepdims=True)
    return squared / (1 + squared) * s / np.sqrt(squared + 1e-8)


def rounded(c, levels):
    return np.floor(np.clip(c, 0, 1) * (levels - 1) + 0.5) / (levels - 1)


def route_quantized(routing, *inputs, levels=4):
    plain = routing(*inputs)
    with quantized(torch.nn.ModuleList([routing]), levels):
        found = routing(*inputs)
    return [x.detach().numpy() for x in plain], [x.detach().numpy() for x in found]


@pytest.mark.parametrize("name", ["dynamic", "scaled_distance"])
def test_parents_are_pooled_again_from_rounded_couplings(name):
    routing = create_routing(name, RoutingShape(7, 3, 4)).double()
    votes, activations = 2 * draw(2, 7, 3, 4), draw(2, 7, seed=1).sigmoid()
    plain, found = route_quantized(routing, votes, activations)
    coupling, u, bias = rounded(plain[2], 4), votes.numpy().copy(), routing.bias[0, 0].item()
    if name == "scaled_distance":
        for b, i, j in np.ndindex(u.shape[:3]):
            u[b, i, j] *= min(1, activations[b, i].item() / np.linalg.norm(u[b, i, j]))
    for b, j in np.ndindex(2, 3):
        pooled = sum(coupling[b, i, j] * u[b, i, j] for i in range(7)) + bias
        np.testing.assert_allclose(found[0][b, j], squashed(pooled), rtol=1e-6)
    np.testing.assert_allclose(found[1], np.linalg.norm(found[0], axis=-1))
    np.testing.assert_allclose(found[2], coupling)
    assert np.abs(found[0] - plain[0]).max() > 1e-3


def test_self_attention_is_clamped_for_quantization_alone():
    routing = create_routing("self_attention", RoutingShape(7, 3, 4)).double()
    routing.prior.data = draw(7, 3, seed=2)
    votes = draw(2, 7, 3, 4)
    plain, found = route_quantized(routing, votes, torch.ones(2, 7))
    assert plain[2].max() > 1
    assert plain[2].min() < 0
    coupling = rounded(plain[2], 4)
    pooled = np.einsum("bio,biod->bod", coupling, votes.numpy())
    length = np.linalg.norm(pooled, axis=-1, keepdims=True)
    np.testing.assert_allclose(found[0], pooled / length * (1 - np.exp(-length)), rtol=1e-6)


@pytest.mark.parametrize("is_positional", [False, True])
def test_em_repeats_its_last_m_step(is_positional):
    if is_positional:  # two windows of 2x2 that share no child
        routing = PositionalEM(RoutingShape(8, 3, 4), kernel_size=2, stride=2).double()
        where, even = (2, 1, 2), 16 / 6
    else:
        routing = create_routing("em", RoutingShape(8, 3, 4)).double()
        where, even = (2,), 8 / 3
    routing.activation_cost.data, routing.vote_cost.data = draw(3, seed=3), draw(3, seed=4)
    votes, activations = draw(*where, 8, 3, 4), draw(*where, 8, seed=1).sigmoid()
    plain, found = route_quantized(routing, votes, activations)
    u, a, coupling = votes.numpy(), activations.numpy(), rounded(plain[2], 4)
    beta_a, beta_u = routing.activation_cost.detach().numpy(), routing.vote_cost.detach().numpy()
    for place in np.ndindex(where):
        for j in range(3):
            weight = coupling[place][:, j] * a[place]
            mass = weight.sum() + 1e-7
            mean = (weight[:, None] * u[place][:, j]).sum(0) / mass
            variance = (weight[:, None] * (u[place][:, j] - mean) ** 2).sum(0) / mass + 0.1
            cost = (beta_u[j] + 0.5 * np.log(variance)).sum() * mass / even
            active = 1 / (1 + np.exp(-(1 - 0.95**3) * (beta_a[j] - cost)))
            np.testing.assert_allclose(found[0][place][j], mean, rtol=1e-6, atol=1e-9)
            np.testing.assert_allclose(found[1][place][j], active, rtol=1e-6)


@pytest.mark.parametrize("jointly", [False, True])
def test_maps_are_pooled_again(jointly):
    routing = MapRouting(3, 4, squash_jointly=jointly).double()
    votes = 3 * draw(2, 5, 6, 4)  # two positions of three types
    plain, found = route_quantized(routing, votes, torch.ones(2, 5).double())
    coupling = (
        rounded(plain[2], 4).reshape(2, 5, 2, 3).transpose(0, 2, 1, 3)
    )  # (batch, position, child, parent)
    u = votes.numpy().reshape(2, 5, 2, 3, 4)
    pooled = np.einsum("bxio,bixod->bxod", coupling, u) + 0.1
    if jointly:
        maps = squashed(pooled.transpose(0, 2, 1, 3).reshape(2, 3, 8))
        expected = maps.reshape(2, 3, 2, 4).transpose(0, 2, 1, 3)
    else:
        expected = squashed(pooled)
    np.testing.assert_allclose(found[0].reshape(2, 2, 3, 4), expected, rtol=1e-6)


def test_each_layer_may_have_its_own_levels():
    model = create_tiny("gamma_capsnet")
    with torch.no_grad(), quantized(model, [11, 6]):
        layers = model(images_for(model), return_routing=True).layers
    for trace, levels in zip(layers, (11, 6), strict=True):
        assert torch.equal(quantize(trace.routed.coupling, levels), trace.routed.coupling)
    with pytest.raises(UserError, match="2 routed layers, got levels for 3"), quantized(model, (11, 11, 6)):
        pass


def test_a_routing_of_one_round_is_left_alone():
    model = create_model("deepcaps_tiny_test", map_iterations=1)
    assert [name for name, _ in quantizable_routings(model)] == ["classes.routing"]
    alone = create_model("dr_capsnet_tiny_test", routing={"name": "dynamic", "iterations": 1})
    with pytest.raises(UserError, match="more than one round"), quantized(alone, 11):
        pass


def plain_mean(votes, activations):
    raise AssertionError("never called")


@pytest.mark.parametrize(
    ("routing", "message"),
    [
        ("slot_attention", "SlotAttentionRouting"),
        ("shared_matrix", "SharedMatrix"),
        (plain_mean, "plain_mean"),
    ],
)
def test_a_routing_that_cannot_read_out_is_named(routing, message):
    model = create_model("dr_capsnet_tiny_test", routing=routing)
    with pytest.raises(UserError, match=f"'classes' routes by {message}.*no method read_out"):
        quantizable_routings(model)


def test_a_network_without_couplings_is_answered():
    with pytest.raises(UserError, match="no couplings to quantize"):
        quantizable_routings(create_model("conv_baseline_tiny_test"))


def test_the_fused_kernel_is_passed_by_with_a_reason():
    layer = FcCaps(8, 3, 4, 5)
    poses = draw(2, 8, 4).float()
    children = Capsules(poses, poses.norm(dim=-1))
    with torch.no_grad():
        before = layer.fallback_reason(children)
        with quantized(layer, 6):
            assert "hook" in layer.fallback_reason(children)
            coupling = layer(children).coupling
        assert layer.fallback_reason(children) == before
    assert torch.equal(quantize(coupling, 6), coupling)


def test_an_error_inside_leaves_the_network_as_it_was():
    model = create_tiny("dr_capsnet")
    with pytest.raises(KeyError), quantized(model, 2):
        raise KeyError
    assert not model.classes.routing._forward_hooks


@pytest.mark.parametrize(
    ("parents", "levels"), [(1, 11), (2, 11), (3, 10), (4, 13), (7, 8), (10, 11), (16, 17), (100, 101)]
)
def test_an_even_share_is_a_level(parents, levels):
    assert even_levels(parents) == levels
    even = torch.zeros(5, parents).softmax(1)
    assert torch.equal(quantize(even, levels), even)
    assert keeps_even_share(parents, levels)


def test_a_number_of_levels_may_round_an_even_share_up():
    assert not keeps_even_share(16, 11)  # 0.0625 becomes 0.1
    assert keeps_even_share(10, 4)  # 0.1 becomes 0


@pytest.mark.parametrize("parents", [7, 16])
def test_even_couplings_stay_and_make_no_tree(parents):
    model = create_model(
        "parse_capsnet_tiny_test", num_classes=parents, capsules=(3, parents, parents), decoder="none"
    ).eval()
    for layer in model.capsules:
        torch.nn.init.zeros_(layer.weight)  # no vote, so that nothing is preferred
    images = torch.rand(2, *model.image_shape)
    with torch.no_grad():
        plain = model(images, return_routing=True).layers
        with quantized(model):
            rounded = model(images, return_routing=True).layers
    for before, after in zip(plain, rounded, strict=True):
        assert torch.equal(before.routed.coupling, after.routed.coupling)
    assert not parse_tree(rounded).edges


def test_each_layer_has_the_levels_of_its_own_parents():
    model = create_model(
        "parse_capsnet_tiny_test", num_classes=7, capsules=(3, 16, 10), decoder="none"
    ).eval()
    with torch.no_grad(), quantized(model):
        layers = model(torch.rand(2, *model.image_shape), return_routing=True).layers
    for trace, levels in zip(layers, (17, 11, 8), strict=True):
        steps = trace.routed.coupling * (levels - 1)
        assert_close(steps, steps.round())


def test_a_layer_with_zero_levels_keeps_its_couplings():
    """At eleven levels every coupling of DeepCaps's routed skip would become zero, and the skip with it."""
    model = create_tiny("deepcaps").eval()
    images = torch.rand(2, *model.image_shape)
    with torch.no_grad():
        skip, classes = (trace.routed for trace in model(images, return_routing=True).layers)
        with quantized(model, (0, 11)):
            kept, rounded_classes = (trace.routed for trace in model(images, return_routing=True).layers)
    assert torch.equal(kept.poses, skip.poses)
    assert torch.equal(rounded_classes.coupling, quantize(classes.coupling, 11))
    with pytest.raises(UserError, match="levels must lie in 2"), quantized(model, (11, 0)):
        pass


def test_evened_layers_pool_by_even_shares():
    layer = FcCaps(6, 4, 3, 5, routing="dynamic", backend="torch")
    children = Capsules(torch.randn(2, 6, 3), torch.rand(2, 6))
    with evened(layer):
        routed = layer(children)
    assert_close(routed.coupling, torch.full((2, 6, 4), 0.25))
    assert not torch.allclose(layer(children).coupling, routed.coupling)
