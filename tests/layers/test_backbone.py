import pytest
import torch
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from torchcaps.core import UserError
from torchcaps.inspection import count_parameters
from torchcaps.layers.backbone import TRUNKS, MobileNetTrunk, ResNetTrunk, create_trunk, list_trunks

CLASSES = 1000  # published counts include the classifier of ImageNet


def on_meta(name):
    with torch.device("meta"):
        return create_trunk(name).eval()


@pytest.mark.parametrize(
    ("name", "giga_macs", "mega_parameters"),
    [
        ("resnet50", 4.089, 25.56),
        ("resnet50_flops75", 3.080, 19.8),
        ("resnet50_flops50", 2.057, 14.4),
        ("resnet50_flops25", 1.034, 7.0),
        ("mobilenetv1", 0.569, 4.23),
        ("mobilenetv1_flops50", 0.289, 2.39),
    ],
)
def test_costs_are_the_published_ones(name, giga_macs, mega_parameters):
    trunk = on_meta(name)
    with FlopCounterMode(display=False) as counter:
        features = trunk(torch.empty(1, 3, 224, 224, device="meta"))
    macs = counter.get_total_flops() / 2 + trunk.out_channels * CLASSES
    assert features.shape == (1, trunk.out_channels, 7, 7)
    assert macs / 1e9 == pytest.approx(giga_macs, abs=5e-4)
    digits = 2 if mega_parameters != round(mega_parameters, 1) else 1
    total = count_parameters(trunk) + (trunk.out_channels + 1) * CLASSES
    assert round(total / 1e6, digits) == mega_parameters


def test_parameters_are_exact():
    assert count_parameters(on_meta("resnet50")) == 23_508_032
    assert count_parameters(on_meta("mobilenetv1")) == 4_231_976 - 1024 * CLASSES - CLASSES


def test_the_map_of_a_localisation_tile_is_4x4():
    assert on_meta("resnet50")(torch.empty(1, 3, 100, 100, device="meta")).shape == (1, 2048, 4, 4)


def test_weights_have_the_names_of_torchvision():
    names = list(create_trunk("resnet_tiny").state_dict())
    expected = ["conv1.weight"]
    norm = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    expected += [f"bn1.{part}" for part in norm]
    for block in ("layer1.0", "layer2.0"):
        for layer in (1, 2, 3):
            expected += [f"{block}.conv{layer}.weight", *(f"{block}.bn{layer}.{part}" for part in norm)]
        expected += [f"{block}.downsample.0.weight", *(f"{block}.downsample.1.{part}" for part in norm)]
    assert names == expected
    full = on_meta("resnet50").state_dict()
    assert len(full) == 318
    assert {name.split(".")[1] for name in full if name.startswith("layer3")} == set("012345")
    assert not [name for name in full if "downsample" in name and ".0.downsample" not in name]


@pytest.mark.parametrize("name", ["resnet_tiny", "resnet_small", "mobilenet_tiny", "mobilenet_small"])
def test_small_trunks_run_and_learn(name):
    trunk = create_trunk(name, in_channels=2)
    features = trunk(torch.randn(3, 2, 64, 64))
    assert features.shape == (3, trunk.out_channels, 64 // trunk.stride, 64 // trunk.stride)
    features.square().sum().backward()
    assert not [n for n, p in trunk.named_parameters() if p.grad is None or not p.grad.any()]


def test_widths_can_be_replaced_group_by_group():
    widths = list(TRUNKS["resnet_tiny"].widths)
    widths[2] = 3  # second convolution of the first block
    trunk = create_trunk("resnet_tiny", widths=widths)
    assert trunk.get_submodule("layer1.0.conv2").weight.shape == (3, 4, 3, 3)
    assert trunk.get_submodule("layer1.0.conv3").weight.shape[1] == 3
    assert trunk.widths == tuple(widths)


def test_removing_channels_equals_masking_them():
    full, pruned = ResNetTrunk((4, 4, 4, 8), (1,)), ResNetTrunk((4, 4, 3, 8), (1,))
    state = full.state_dict()
    for name, values in state.items():
        if name.startswith("layer1.0.bn2") and values.dim():
            state[name] = values[:3]
    state["layer1.0.conv2.weight"] = state["layer1.0.conv2.weight"][:3]
    state["layer1.0.conv3.weight"] = state["layer1.0.conv3.weight"][:, :3]
    pruned.load_state_dict(state)
    with torch.no_grad():
        full.get_submodule("layer1.0.conv3").weight[:, 3] = 0
    images = torch.randn(2, 3, 16, 16)
    assert_close(pruned.eval()(images), full.eval()(images))


def test_the_downsampling_convolution_is_the_wide_one():
    trunk = create_trunk("resnet_tiny")
    assert trunk.get_submodule("layer2.0.conv1").stride == (1, 1)
    assert trunk.get_submodule("layer2.0.conv2").stride == (2, 2)


def test_impossible_widths_are_explained():
    with pytest.raises(UserError, match=r"takes 37 widths \(stem, then per stage.*got 2"):
        create_trunk("resnet50", widths=(64, 64))
    with pytest.raises(UserError, match="group 2 has no channels left"):
        MobileNetTrunk((8, 8, 0), (1, 2))
    with pytest.raises(UserError, match="did you mean resnet50"):
        create_trunk("resnet5")
    assert {"resnet50", "mobilenetv1"} <= set(list_trunks())
