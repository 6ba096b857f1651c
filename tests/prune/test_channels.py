"""A network without channels against one in which they are silent."""

import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from torchcaps.core import UserError
from torchcaps.layers.backbone import TRUNKS, create_trunk
from torchcaps.models import create_model
from torchcaps.prune import group_norms, random_channels, remove_channels, strongest_channels

MODELS = {
    "resnet": ("trunk_classifier_tiny_test", {"trunk": "resnet_tiny"}),
    "mobilenet": ("trunk_classifier_tiny_test", {"trunk": "mobilenet_tiny"}),
    "capsules": ("backbone_capsnet_tiny_test", {}),
    "frozen capsules": ("backbone_capsnet_tiny_test", {"freeze_trunk": True, "decoder": "none"}),
    "factorised capsules": ("backbone_capsnet_tiny_test", {"factorised": True, "trunk": "mobilenet_tiny"}),
}


@pytest.fixture(params=MODELS)
def model(request):
    name, options = MODELS[request.param]
    model = create_model(name, **options).double()
    for module in model.modules():  # statistics and gains that matter
        if isinstance(module, nn.BatchNorm2d):
            for values in (module.running_mean, module.bias.data, module.running_var, module.weight.data):
                values.copy_(torch.rand(len(values)) + 0.5)
    return model.eval()


@pytest.fixture
def widths(model):
    random = torch.Generator().manual_seed(4)
    return tuple(int(torch.randint(width // 2, width, (), generator=random)) for width in model.trunk.widths)


def silenced(model, kept):
    """The whole network with everything zero that a removed channel or capsule would have said."""
    twin = copy.deepcopy(model)
    for convolution in twin.trunk.convolutions():
        norm = twin.trunk.get_submodule(convolution.norm)
        gone = complement(len(norm.weight), kept[convolution.group])
        norm.weight.data[gone] = norm.bias.data[gone] = 0
    if hasattr(twin, "primary"):
        pose = twin.config.primary_pose
        filters = twin.primary.conv.weight.data
        strength = filters.abs().reshape(len(filters) // pose, -1).sum(1)
        gone = strength.argsort()[: len(strength) - len(kept[-1]) // pose]
        for capsule in gone.tolist():
            rows = slice(capsule * pose, (capsule + 1) * pose)
            filters[rows] = twin.primary.conv.bias.data[rows] = 0
        if twin.depthwise is not None:
            twin.depthwise.bias.data[complement(twin.depthwise.out_channels, kept[-1])] = 0
    return twin


def complement(count, kept):
    return [channel for channel in range(count) if channel not in kept.tolist()]


def test_removing_equals_silencing(model, widths):
    kept = strongest_channels(model.trunk, widths)
    pruned, silent = remove_channels(model, kept), silenced(model, kept)
    images = torch.randn(3, *model.image_shape, dtype=torch.float64)
    assert pruned.trunk.widths == widths
    assert pruned.config.trunk_widths == widths
    assert_close(pruned(images).activations, silent(images).activations, rtol=1e-12, atol=1e-12)
    assert_close(pruned(images).poses, silent(images).poses, rtol=1e-12, atol=1e-12)
    assert not torch.allclose(pruned(images).poses, model(images).poses)


def test_keeping_all_changes_nothing_and_shares_nothing(model):
    whole = [torch.arange(width) for width in model.trunk.widths]
    twin = remove_channels(model, whole)
    images = torch.randn(2, *model.image_shape, dtype=torch.float64)
    assert torch.equal(twin(images).poses, model(images).poses)
    for (name, mine), theirs in zip(twin.named_parameters(), model.parameters(), strict=True):
        assert mine.data_ptr() != theirs.data_ptr()
        assert mine.requires_grad == theirs.requires_grad, name
    assert [m.training for m in twin.modules()] == [m.training for m in model.modules()]


def test_a_pruned_network_goes_on_learning(model, widths):
    pruned = remove_channels(model, strongest_channels(model.trunk, widths)).train()
    output = pruned(torch.randn(4, *model.image_shape, dtype=torch.float64))
    output.activations.square().sum().backward()
    learning = [p for name, p in pruned.named_parameters() if p.requires_grad and "decoder" not in name]
    assert all(p.grad is not None and p.grad.any() for p in learning)


def test_the_strongest_filters_of_the_leader_stay():
    trunk = create_trunk("resnet_tiny")
    leader = trunk.get_submodule("layer1.0.conv3").weight  # also of the downsampling convolution
    with torch.no_grad():
        leader.zero_()[[3, 5, 11]] = torch.tensor([-3.0, 2.0, 1.0]).view(3, 1, 1, 1)
    widths = [*trunk.widths]
    widths[3] = 2
    kept = strongest_channels(trunk, widths)
    assert kept[3].tolist() == [3, 5]
    assert [len(channels) for channels in kept] == widths
    assert_close(group_norms(trunk)[3][[3, 5, 11]], torch.tensor([12.0, 8.0, 4.0]))


def test_random_channels_follow_their_generator():
    trunk = create_trunk("mobilenet_tiny")
    widths = [width // 2 for width in trunk.widths]
    draw = [random_channels(trunk, widths, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)]
    assert all(torch.equal(a, b) for a, b in zip(draw[0], draw[1], strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(draw[0], draw[2], strict=True))
    assert [len(set(channels.tolist())) for channels in draw[0]] == widths


@pytest.mark.parametrize(("name", "groups"), [("resnet50", 37), ("mobilenetv1", 14)])
def test_every_channel_belongs_to_one_group(name, groups):
    with torch.device("meta"):
        trunk = create_trunk(name)
    layout = trunk.convolutions()
    assert len(TRUNKS[name].widths) == groups
    assert {convolution.group for convolution in layout} == set(range(groups))
    found = [module_name for module_name, module in trunk.named_modules() if isinstance(module, nn.Conv2d)]
    assert sorted(convolution.name for convolution in layout) == sorted(found)
    for convolution in layout:
        module, norm = (trunk.get_submodule(part) for part in (convolution.name, convolution.norm))
        assert module.out_channels == norm.num_features == trunk.widths[convolution.group]
        source = 3 if convolution.source is None else trunk.widths[convolution.source]
        assert module.in_channels == source
        assert module.groups == (source if convolution.is_depthwise else 1)


def test_a_pruned_network_iterates_as_often():
    model = create_model("backbone_capsnet_tiny_test")
    model.classes.routing.iterations = 5  # as routing annealing does
    assert (
        remove_channels(model, strongest_channels(model.trunk, model.trunk.widths)).classes.routing.iterations
        == 5
    )


def test_other_networks_and_routings_are_refused():
    with pytest.raises(UserError, match="not DRCapsNet"):
        remove_channels(create_model("dr_capsnet_tiny_test"), [])
    model = create_model("backbone_capsnet_tiny_test", routing="self_attention")
    with pytest.raises(UserError, match="cannot follow the channels that are removed"):
        remove_channels(model, strongest_channels(model.trunk, [width // 2 for width in model.trunk.widths]))
