"""What every segmentation network must do, and the tables of SegCaps and U-Net."""

import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import UserError
from torchcaps.inspection import count_parameters
from torchcaps.losses import DiceCrossEntropyLoss
from torchcaps.models import MODELS, UNet, UNetConfig, create_model, list_models
from torchcaps.models.segcaps import SegCaps, SegCapsConfig

from models.contract import NetworkContract, images

PARAMETERS = {
    "segcaps_r3": 1_416_112,
    "segcaps_r1": 1_416_112,
    "segcaps_r1_released": 1_416_112,
    "unet_3": 1_861_697,
    "unet_4": 7_696_193,
    "unet_5": 31_030_593,
}
LAYERS = {  # types, pose, side at 128 px, parameters (LaLonde & Bagci 2018)
    "primary": (2, 16, 64, 12_832),
    "same.0": (4, 16, 64, 25_664),
    "shrink.0": (4, 32, 32, 51_328),
    "same.1": (8, 32, 32, 205_056),
    "shrink.1": (8, 64, 16, 410_112),
    "bottom": (8, 32, 16, 409_856),
    "grow.0": (8, 32, 32, 131_328),
    "merge.0": (4, 32, 32, 102_528),
    "grow.1": (4, 16, 64, 32_832),
    "merge.1": (4, 16, 64, 25_664),
    "last_up": (2, 16, 128, 8_224),
    "classes": (1, 16, 128, 272),
}
TINY = ["segcaps_tiny_test", "unet_tiny_test"]


@pytest.fixture(params=TINY)
def model(request):
    return create_model(request.param)


class TestSegmentationNetworks(NetworkContract):
    pass


@pytest.mark.parametrize(("name", "total"), PARAMETERS.items())
def test_parameters_are_exact(name, total):
    with torch.device("meta"):
        assert count_parameters(create_model(name)) == total
    assert MODELS[name].task == "segmentation"


def test_the_reconstruction_head_is_counted():
    with torch.device("meta"):
        assert count_parameters(create_model("segcaps_r3", reconstruction=True)) == 1_425_649


def test_segcaps_follows_its_table_layer_by_layer():
    model = create_model("segcaps_r3").eval()
    assert count_parameters(model.stem) == 416
    with torch.no_grad():
        output = model(torch.rand(1, 1, 128, 128), return_routing=True)
    for (name, (types, pose, side, total)), trace in zip(LAYERS.items(), output.layers, strict=True):
        assert count_parameters(model.get_submodule(name)) == total
        assert trace.routed.poses.shape == (1, side, side, types, pose)
    children = [trace.children.poses.shape[-2:] for trace in output.layers]
    assert [children[7], children[9], children[11]] == [(16, 32), (8, 16), (3, 16)]
    assert output.activations.shape == (1, 1, 128, 128)


@pytest.mark.parametrize(
    ("name", "same", "resize"), [("segcaps_r3", 3, 3), ("segcaps_r1", 1, 1), ("segcaps_r1_released", 1, 3)]
)
def test_iterations_of_each_layer(name, same, resize):
    with torch.device("meta"):
        model = create_model(name)
    expected = dict.fromkeys(LAYERS, same) | dict.fromkeys(
        ["shrink.0", "shrink.1", "grow.0", "grow.1", "last_up"], resize
    )
    expected["primary"] = 1
    assert {layer: model.get_submodule(layer).routing.iterations for layer in LAYERS} == expected


@pytest.mark.parametrize("routing", ["em", "self_attention"])
def test_the_deepest_level_may_have_a_routing_of_its_own(routing):
    model = create_model("segcaps_tiny_test", bottom_routing=routing)
    kinds = {name: type(model.get_submodule(name).routing) for name in ("bottom", "same.0", "classes")}
    assert kinds["bottom"] is not kinds["same.0"] is kinds["classes"]
    activations = model(torch.rand(1, 1, 16, 16)).activations
    activations.sum().backward()
    assert all(weight.grad is not None for weight in model.bottom.parameters())
    assert activations.isfinite().all()


def test_deep_supervision_gives_smaller_masks_while_it_trains_and_changes_nothing_else():
    torch.manual_seed(0)
    model = create_model("segcaps_r3", deep_supervision=True)
    assert count_parameters(model) == PARAMETERS["segcaps_r3"] + sum(map(count_parameters, model.deep))
    batch = torch.rand(1, 1, 32, 32)
    output = model(batch)
    assert [mask.shape[2:] for mask in output.deeper] == [(8, 8), (16, 16)]
    DiceCrossEntropyLoss()(output, torch.ones(1, 32, 32, dtype=torch.uint8)).backward()
    assert all(weight.grad is not None for weight in model.parameters())
    plain = create_model("segcaps_r3").eval()
    plain.load_state_dict({key: each for key, each in model.state_dict().items() if "deep" not in key})
    with torch.no_grad():
        found = model.eval()(batch)
        assert found.deeper == ()
        assert_close(found.activations, plain(batch).activations)


def test_every_pixel_gets_an_activation_between_zero_and_one(model):
    batch = images(model)
    activations = model(batch).activations
    assert activations.shape == (2, 1, *batch.shape[2:])
    assert activations.min() >= 0
    assert activations.max() <= 1


def test_the_unet_also_gives_logits():
    output = create_model("unet_tiny_test")(torch.rand(1, 1, 16, 16))
    assert_close(output.logits.sigmoid(), output.activations)


def test_routing_is_returned_only_when_asked_for():
    model = create_model("segcaps_tiny_test")
    assert model(images(model)).layers == ()
    output = model(images(model), return_routing=True)
    assert len(output.layers) == 8
    for children, routed in output.layers:
        assert routed.coupling.shape[-2:] == (children.poses.shape[-2], routed.poses.shape[-2])


def test_other_sizes_that_can_be_halved_need_no_other_model(model):
    assert model(torch.rand(1, 1, 24, 8)).activations.shape == (1, 1, 24, 8)


@pytest.mark.parametrize("change", [{"in_channels": 3}, {"num_classes": 4}, {"image_size": 32}], ids=str)
@pytest.mark.parametrize("name", TINY)
def test_any_size_channels_and_classes(name, change):
    model = create_model(name, **change)
    output = model(images(model))
    assert output.activations.shape == (2, model.config.num_classes, *model.image_shape[1:])


def test_checkpointing_changes_no_gradient():
    plain = create_model("segcaps_tiny_test")
    thrifty = create_model("segcaps_tiny_test", checkpoint=True)
    thrifty.load_state_dict(plain.state_dict())
    batch = images(plain)
    for model in (plain, thrifty):
        model(batch).activations.square().sum().backward()
    for ours, theirs in zip(plain.parameters(), thrifty.parameters(), strict=True):
        if ours.grad is not None:
            assert_close(ours.grad, theirs.grad)


@pytest.mark.parametrize("routing", ["em", "scaled_distance", "self_attention"])
def test_any_routing_fits(routing):
    # scaled distance compares parents and wants two of them
    model = create_model("segcaps_tiny_test", routing=routing, num_classes=2)
    assert model(images(model)).activations.isfinite().all()


def test_the_decoder_is_found_under_one_name_and_stored_under_its_own():
    model = create_model("segcaps_tiny_test")
    assert model.decoder is model.reconstruction
    assert [name for name in model.state_dict() if name.startswith("reconstruction.")]
    assert not [name for name in model.state_dict() if name.startswith("decoder")]
    assert create_model("segcaps_tiny_test", reconstruction=False).decoder is None
    assert create_model("unet_tiny_test").decoder is None


def test_masks_choose_what_is_reconstructed():
    model = create_model("segcaps_tiny_test").eval()
    batch, masks = images(model), torch.zeros(2, 1, 16, 16)
    assert_close(model(batch, torch.ones_like(masks)).reconstruction, model(batch).reconstruction)
    blank = model(batch, masks).reconstruction
    assert blank.shape == batch.shape
    assert_close(blank, blank[:, :, :1, :1].expand_as(blank))


def test_a_bright_square_is_learned(model):
    generator = torch.Generator().manual_seed(0)
    masks = torch.zeros(4, 1, 16, 16)
    for mask in masks:
        row, column = torch.randint(0, 10, (2,), generator=generator).tolist()
        mask[0, row : row + 6, column : column + 6] = 1
    batch = 0.8 * masks + 0.2 * torch.rand(masks.shape, generator=generator)
    optimizer = torch.optim.Adam(model.parameters(), 2e-2)
    losses = []
    for _ in range(20):
        output = model(batch)
        loss = DiceCrossEntropyLoss()(output, masks[:, 0].byte())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.6 * losses[0]


def test_sizes_that_cannot_be_halved_are_explained(model):
    step = 2**model.halvings
    with pytest.raises(UserError, match=f"multiples of {step}, got 18x16; what fits is 16, 20"):
        model(torch.rand(1, 1, 18, 16))
    with pytest.raises(UserError, match="takes images of 1 channels, got 3"):
        model(torch.rand(1, 3, 16, 16))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: create_model("segcaps_r3", image_size=100),
            "multiples of 8, got 100x100; what fits is 96, 104",
        ),
        (lambda: create_model("unet_5", image_size=3), "multiples of 16, got 3x3; what fits is 16"),
        (lambda: create_model("unet_3", num_classes=0), "num_classes must be at least 1"),
        (lambda: create_model("unet_3", in_channels=0), "in_channels must be at least 1"),
        (lambda: UNet(UNetConfig(depth=0)), "depth must be at least 1"),
        (lambda: SegCaps(SegCapsConfig(stem_pose=8)), "poses of 16 dimensions and its skip connection 8"),
        (lambda: SegCaps(SegCapsConfig(up=())), "down has 2 levels and up 0"),
    ],
)
def test_impossible_configs_are_explained(make, message):
    with pytest.raises(UserError, match=message), torch.device("meta"):
        make()


def test_both_families_are_listed():
    assert set(PARAMETERS) <= set(list_models())
    assert set(TINY) <= set(list_models("*_tiny_test"))
