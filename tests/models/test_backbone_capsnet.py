from pathlib import Path

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from torchcaps.core import UserError
from torchcaps.inspection import count_parameters
from torchcaps.layers.backbone import TRUNKS, create_trunk
from torchcaps.models import config_as_json, create_model
from torchcaps.models.backbone_capsnet import BackboneCapsNet, BackboneCapsNetConfig, capsule_head


def on_meta(name, **changes):
    with torch.device("meta"):
        return create_model(name, **changes)


@pytest.fixture
def trunk():
    return nn.Sequential(nn.Conv2d(2, 20, 3, 2), nn.BatchNorm2d(20), nn.Dropout(0.5))


@pytest.fixture
def config():
    return BackboneCapsNetConfig(in_channels=2, image_size=9, num_classes=3)


def primary_capsules(channels, side):
    return side**2 * channels * (channels // 8 * 8) + channels // 8 * 8


@pytest.mark.parametrize(
    ("name", "trunk", "channels"), [("resnet50", 23_508_032, 2048), ("mobilenetv1", 3_206_976, 1024)]
)
def test_parameters_are_exact(name, trunk, channels):
    head = primary_capsules(channels, 2) + channels // 8 * 10 * 8 * 16 + 10 * 16
    assert count_parameters(on_meta(f"{name}_capsnet_64")) == trunk + head


@pytest.mark.parametrize(
    ("trunk", "channels", "capsules", "millions"),
    [
        ("resnet50", 2048, 256, 205.5),
        ("resnet50_flops75", 1970, 246, 190.0),
        ("resnet50_flops50", 1947, 243, 185.5),
        ("resnet50_flops25", 944, 118, 43.7),
    ],
)
def test_primary_capsules_of_the_thesis_table(trunk, channels, capsules, millions):
    model = on_meta("resnet50_capsnet_64", image_size=224, trunk=trunk)
    assert model.primary.conv.kernel_size == (7, 7)
    assert model.classes.in_caps == capsules
    assert count_parameters(model.primary) == primary_capsules(channels, 7)
    assert round(count_parameters(model.primary) / 1e6, 1) == millions


@pytest.mark.parametrize(("trunk", "capsules"), [("mobilenetv1", 128), ("mobilenetv1_flops50", 77)])
def test_primary_capsules_of_the_mobilenets(trunk, capsules):
    assert on_meta("mobilenetv1_capsnet_64", trunk=trunk).classes.in_caps == capsules


def test_factorising_shrinks_the_primary_convolution():
    model = on_meta("resnet50_capsnet_64", image_size=224, factorised=True)
    assert count_parameters(model.depthwise) == 49 * 2048 + 2048
    assert count_parameters(model.primary) == 2048 * 2048 + 2048


@pytest.mark.parametrize("factorised", [False, True])
def test_every_parameter_learns(factorised):
    model = create_model("backbone_capsnet_tiny_test", factorised=factorised, decoder="none")
    model(torch.rand(2, 1, 16, 16)).activations.sum().backward()
    assert not [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]


def test_a_head_stands_on_any_trunk(trunk, config):
    model = capsule_head(trunk, config)
    assert model.trunk is trunk
    assert model.primary.conv.weight.shape == (16, 20, 4, 4)
    output = model(torch.rand(5, 2, 9, 9), return_routing=True)
    assert output.activations.shape == (5, 3)
    assert output.layers[0].children.poses.shape == (5, 2, 8)


def test_building_leaves_the_trunk_as_it_was(trunk, config):
    trunk[2].eval()
    before = {name: values.clone() for name, values in trunk.state_dict().items()}
    capsule_head(trunk, config)
    assert [module.training for module in trunk] == [True, True, False]
    assert all(torch.equal(values, before[name]) for name, values in trunk.state_dict().items())


def test_features_below_zero_are_cut(config):
    class Constant(nn.Module):
        def forward(self, images):
            return images.new_full((images.shape[0], 8, 2, 2), -3.0)

    model = capsule_head(Constant(), config)
    capsules = model.encode(torch.rand(1, 2, 9, 9))[0].children
    with torch.no_grad():
        blank = model.primary(torch.zeros(1, 8, 2, 2))
    assert_close(capsules.poses, blank.poses.flatten(1, 3))


def test_a_frozen_trunk_stays_as_it_is(trunk):
    frozen = BackboneCapsNetConfig(in_channels=2, image_size=9, num_classes=3, freeze_trunk=True)
    model = capsule_head(trunk, frozen).train()
    before = {name: values.clone() for name, values in trunk.state_dict().items()}
    optimizer = torch.optim.SGD(model.parameters(), 1.0, weight_decay=0.1)
    for _ in range(2):
        model(torch.randn(4, 2, 9, 9)).activations.sum().backward()
        optimizer.step()
    assert not any(module.training for module in trunk.modules())
    assert model.training
    assert model.primary.training
    assert not any(parameter.requires_grad for parameter in trunk.parameters())
    assert all(torch.equal(values, before[name]) for name, values in trunk.state_dict().items())
    assert model.primary.conv.weight.grad.any()


def test_a_trunk_that_is_not_frozen_counts_its_statistics(trunk, config):
    model = capsule_head(trunk, config).train()
    model(torch.randn(4, 2, 9, 9))
    assert trunk[1].num_batches_tracked == 1


def test_pruned_widths_are_part_of_the_config():
    widths = tuple(width // 2 for width in TRUNKS["resnet_tiny"].widths)
    model = create_model("backbone_capsnet_tiny_test", trunk_widths=widths)
    assert model.trunk.out_channels == 16
    twin = BackboneCapsNet(BackboneCapsNetConfig(**config_as_json(model.config)))
    twin.load_state_dict(model.state_dict())


def test_impossible_trunks_are_explained(config):
    with pytest.raises(UserError, match=r"leaves no map after layer 'trunk'.*smallest that works is 32 px"):
        on_meta("resnet50_capsnet_64", image_size=16)
    with pytest.raises(UserError, match="gives no feature map for images of 2x9x9"):
        capsule_head(nn.Conv2d(2, 8, 11), config)
    with pytest.raises(UserError, match=r"must give a map .* got 1x162"):
        capsule_head(nn.Flatten(), config)
    with pytest.raises(UserError, match="gives 4 channels, too few for one capsule of 8"):
        capsule_head(nn.Conv2d(2, 4, 3), config)
    own = capsule_head(nn.Conv2d(2, 8, 3), config)
    with pytest.raises(UserError, match="trunk of your own"):
        BackboneCapsNet(own.config)
    with pytest.raises(UserError, match="unknown trunk 'resnet51'"):
        on_meta("resnet50_capsnet_64", trunk="resnet51")


def test_a_trunk_on_the_meta_device_is_probed_there():
    with torch.device("meta"):
        trunk = create_trunk("mobilenetv1")
        model = capsule_head(trunk, BackboneCapsNetConfig(image_size=96))
    assert model.primary.conv.kernel_size == (3, 3)


@pytest.mark.parametrize(
    ("name", "size"),
    [("resnet50_capsnet_64", 224), ("resnet50_capsnet_64", 64), ("mobilenetv1_capsnet_64", 64)],
)
def test_the_page_has_the_sizes_of_primary_layers(name, size):
    whole, factorised = (on_meta(name, image_size=size, factorised=choice) for choice in (False, True))
    primary = count_parameters(whole.primary)
    left = primary - count_parameters(whole) + count_parameters(factorised)
    page = (Path(__file__).parents[2] / "docs" / "backbones.md").read_text()
    assert f"| {size} px | {primary:,} | {left:,} |" in page


def test_an_image_as_small_as_the_trunk_allows_leaves_one_position():
    network = create_model("backbone_capsnet_tiny_test", image_size=8, decoder="none")
    assert network.trunk.stride == 8
    assert network.primary.conv.kernel_size == (1, 1)
    with pytest.raises(UserError, match="the smallest that works is 8 px"):
        create_model("backbone_capsnet_tiny_test", image_size=7)
