from dataclasses import replace

import pytest
import torch

from torchcaps.core import UserError
from torchcaps.models import config_as_json, create_model
from torchcaps.prune import measure_size, shrink
from torchcaps.routing import list_routings

FAMILIES = {
    "dr_capsnet": {"stem_channels": 6, "primary_types": 3},
    "gamma_capsnet": {"stem_channels": 6},
    "deepcaps": {"stem_channels": 8},
    "efficient_capsnet": {"primary_kernel": 3},
}
ROUTED = {
    f"{family}_{routing}": (f"{family}_tiny_test", {**options, "routing": routing})
    for family, options in FAMILIES.items()
    for routing in list_routings()
}
VARIANTS = {
    "dr": ("dr_capsnet_tiny_test", {"stem_channels": 6, "primary_types": 3}),
    "dr_same": ("dr_capsnet_tiny_test", {"stem_channels": 6, "padding": "same"}),
    "dr_leaky": ("dr_capsnet_tiny_test", {"routing": {"name": "dynamic", "leaky": True}}),
    "dr_em": ("dr_capsnet_tiny_test", {"stem_channels": 6, "routing": "em"}),
    "gamma": ("gamma_capsnet_tiny_test", {"stem_channels": 6}),
    "deepcaps": ("deepcaps_tiny_test", {"stem_channels": 8}),
    "efficient": ("efficient_capsnet_tiny_test", {}),
    "efficient_map": ("efficient_capsnet_tiny_test", {"primary_kernel": 3, "norm": "instance"}),
}


@torch.no_grad()
def pruned(variant, seed=0):
    """A network in float64 with zeros of every kind: children, types, filters, channels, single weights."""
    torch.manual_seed(seed)
    name, options = (VARIANTS | ROUTED)[variant]
    network = create_model(name, decoder="none", **options).double()
    for parameter in network.parameters():
        parameter += 0.1 * torch.randn_like(parameter)
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    matrices = getattr(network, "hidden", network.classes).weight
    if len(matrices) > 1:  # else they are shared, and without them nobody votes
        matrices[torch.rand(len(matrices)) < 0.4] = 0.0
    if hasattr(network, "primary"):
        matrices[1 :: network.primary.types] = 0.0  # a whole type
    for module in network.modules():
        if isinstance(module, torch.nn.Conv2d):
            module.weight[torch.rand(len(module.weight)) < 0.3] = 0.0
            module.weight[:, torch.rand(module.weight.shape[1]) < 0.2] = 0.0
    return network.eval()


def images_for(network, batch=3):
    return torch.randn(batch, *network.image_shape, dtype=torch.float64)


@torch.no_grad()
def assert_same_output(first, second):
    images = images_for(first)
    expected, got = first(images), second(images)
    torch.testing.assert_close(got.activations, expected.activations, atol=1e-9, rtol=0)
    torch.testing.assert_close(got.poses, expected.poses, atol=1e-9, rtol=0)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_output_stays_and_the_network_shrinks(variant, seed):
    network = pruned(variant, seed)
    smaller = shrink(network)
    assert_same_output(network, smaller)
    assert type(smaller) is type(network)
    before, after = measure_size(network), measure_size(smaller)
    assert after.parameters == sum(parameter.numel() for parameter in smaller.parameters())
    assert all(small < large for small, large in zip(after, before, strict=True))


@pytest.mark.parametrize("variant", ROUTED)
def test_the_output_stays_under_every_routing(variant):
    network = pruned(variant)
    assert_same_output(network, shrink(network))


@pytest.mark.parametrize("family", FAMILIES)
def test_children_that_share_their_matrices_all_stay(family):
    name, options = ROUTED[f"{family}_shared_matrix"]
    network = create_model(name, decoder="none", **options).double().eval()
    smaller = shrink(network)
    assert smaller.config == network.config
    assert_same_output(network, smaller)


@torch.no_grad()
def test_matrices_that_all_share_may_be_zero():
    network = create_model("dr_capsnet_tiny_test", decoder="none", routing="shared_matrix").double().eval()
    network.classes.weight.zero_()
    smaller = shrink(network)
    assert smaller.config == network.config
    assert_same_output(network, smaller)


@torch.no_grad()
def test_voters_that_share_their_matrices_stay_voters():
    options = {"decoder": "none", "routing": "shared_matrix", "voters": 3}
    network = create_model("dr_capsnet_tiny_test", **options).double().eval()
    network.classes.voters.copy_(torch.tensor([1, 3, 7]))  # all of the second of two types
    smaller = shrink(network)
    assert smaller.config == replace(network.config, primary_types=1)
    assert smaller.classes.voters.tolist() == [0, 1, 3]
    assert_same_output(network, smaller)


def test_a_network_goes_on_with_the_iterations_it_was_given():
    network = pruned("dr")
    network.classes.routing.iterations = 5  # as routing annealing does
    smaller = shrink(network)
    assert smaller.classes.routing.iterations == 5
    assert_same_output(network, smaller)


@torch.no_grad()
def test_couplings_are_those_of_all_children_of_the_types_that_are_left():
    network = pruned("dr")
    smaller = shrink(network)
    images = images_for(network)
    whole, part = (each(images, return_routing=True).layers[-1] for each in (network, smaller))
    types = [kind for kind in range(3) if network.classes.weight[kind::3].any()]
    assert len(types) == smaller.config.primary_types == 2
    of_types = [child for child in range(len(network.classes.weight)) if child % 3 in types]
    torch.testing.assert_close(part.routed.coupling, whole.routed.coupling[:, of_types])
    torch.testing.assert_close(part.children.poses, whole.children.poses[:, of_types])


@pytest.mark.parametrize("variant", ["dr", "efficient_map"])
def test_config_and_weights_are_enough_to_build_it_again(variant):
    network = pruned(variant)
    smaller = shrink(network)
    assert smaller.config.voters > 0
    name, _ = VARIANTS[variant]
    again = create_model(name, **config_as_json(smaller.config)).double()
    again.load_state_dict(smaller.state_dict())
    assert_same_output(network, again.eval())


def test_a_shrunk_network_can_be_pruned_and_shrunk_again():
    once = shrink(pruned("dr"))
    with torch.no_grad():
        once.classes.weight[::2] = 0.0
    twice = shrink(once)
    assert twice.config.voters < once.config.voters
    assert_same_output(once, twice)


@torch.no_grad()
def test_a_selection_ends_when_all_that_are_left_vote():
    network = create_model("dr_capsnet_tiny_test", decoder="none").double().eval()
    network.classes.weight[3::2] = 0.0
    once = shrink(network)
    assert once.config.voters == len(network.classes.weight) // 2 + 1
    once.classes.weight[1] = 0.0
    twice = shrink(once)
    assert twice.config == replace(network.config, primary_types=1)
    assert_same_output(once, twice)


def test_a_network_without_zeros_stays_as_it_is():
    network = create_model("efficient_capsnet_tiny_test", decoder="none").double().eval()
    smaller = shrink(network)
    assert smaller.config == network.config
    assert measure_size(smaller) == measure_size(network)
    assert_same_output(network, smaller)


@torch.no_grad()
def test_a_network_of_zeros_alone_keeps_one_of_each():
    network = create_model("dr_capsnet_tiny_test").double().eval()
    for parameter in (network.stem.weight, network.primary.conv.weight, network.classes.weight):
        parameter.zero_()
    smaller = shrink(network)
    assert smaller.config == replace(network.config, stem_channels=1, primary_types=1, voters=1)
    assert_same_output(network, smaller)


def test_the_network_given_is_left_alone():
    network = pruned("efficient")
    before = {key: value.clone() for key, value in network.state_dict().items()}
    shrink(network)
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())


def test_gradients_reach_every_parameter_of_a_shrunk_network():
    smaller = shrink(pruned("dr")).train()
    output = smaller(images_for(smaller), torch.tensor([0, 1, 2]))
    output.activations.sum().backward()
    assert all(parameter.grad is not None for parameter in smaller.parameters())


def test_children_stay_under_a_routing_where_a_vote_of_zero_counts():
    network = pruned("dr_em")
    smaller = shrink(network)
    assert len(smaller.classes.weight) == len(network.classes.weight)
    assert smaller.config.stem_channels < network.config.stem_channels


def test_other_families_are_refused():
    message = r"SegCaps cannot be shrunk.*deepcaps, dr_capsnet, efficient_capsnet, gamma_capsnet do"
    with pytest.raises(UserError, match=message):
        shrink(create_model("segcaps_tiny_test"))


@pytest.mark.parametrize(
    ("voters", "message"), [(-1, "must be at least 0"), (10_000, "between 1 and all can vote")]
)
def test_impossible_numbers_of_voters_are_refused(voters, message):
    with pytest.raises(UserError, match=message):
        create_model("dr_capsnet_tiny_test", voters=voters)


@torch.no_grad()
def test_a_constant_channel_stays_where_zeros_around_the_map_would_be_taken_for_it():
    network = create_model("dr_capsnet_tiny_test", decoder="none", stem_channels=6, padding="same").double()
    network.stem.weight[:4] = 0.0
    network.stem.bias[:4] = torch.tensor(
        [0.5, 0.7, -0.5, 0.0]
    )  # two constants, and two that a rectifier cuts
    smaller = shrink(network.eval())
    assert smaller.config.stem_channels == 4
    assert_same_output(network, smaller)


@torch.no_grad()
def test_children_that_fall_silent_later_keep_the_couplings_of_their_learnt_prior():
    network = create_model("dr_capsnet_tiny_test", decoder="none", routing="self_attention").double().eval()
    network.classes.weight[1] = 0.0
    once = shrink(network)
    once.classes.routing.prior.normal_()  # it learnt on
    once.classes.weight[3] = 0.0
    twice = shrink(once)
    assert (once.config.voters, twice.config.voters) == (7, 6)
    assert twice.config.primary_types == network.config.primary_types
    images = images_for(network)
    before, after = (each(images, return_routing=True).layers[-1].routed for each in (once, twice))
    torch.testing.assert_close(after.coupling, before.coupling)


def test_the_size_counts_the_bytes_of_statistics_too():
    network = create_model("efficient_capsnet_tiny_test", decoder="none")
    norms = [module for module in network.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    assert norms
    statistics = sum(2 * 4 * norm.num_features + 8 for norm in norms)  # means, variances and a count
    size = measure_size(network)
    assert size.bytes == 4 * size.parameters + statistics
