"""What is particular to one family."""

from itertools import pairwise

import pytest
import torch
from torch.testing import assert_close

from torchcaps.layers import map_sizes
from torchcaps.models import EffConvCapsNetConfig, create_model
from torchcaps.routing.scaled_distance import ScaledDistanceRouting

from refusal import REFUSED


def test_the_original_for_cifar10_lets_a_child_choose_no_parent():
    with torch.device("meta"):
        original, thesis = create_model("dr_capsnet_cifar10_original"), create_model("dr_capsnet_cifar10")
    assert (original.classes.routing.leaky, original.classes.in_caps) == (True, 9216)
    assert (thesis.classes.routing.leaky, thesis.classes.in_caps) == (False, 1024)


def test_the_convolutions_of_efficient_capsnet_start_he_normal():
    for convolution, *_ in create_model("efficient_capsnet_mnist").stem:
        fan_in = convolution.weight[0].numel()
        assert convolution.weight.std().item() == pytest.approx((2 / fan_in) ** 0.5, rel=0.15)
        assert not convolution.bias.any()


def test_effconv_has_the_sizes_of_the_thesis():
    config = EffConvCapsNetConfig()
    assert map_sizes(config.image_size, config.stages) == [(n, n) for n in (62, 60, 58, 28, 26, 12)]
    with torch.device("meta"):
        assert create_model("effconv_capsnet_128").classes.in_caps == 2304
        assert create_model("effconv_capsnet_64").classes.in_caps == 2304  # as large a map of half the image


@pytest.mark.parametrize(("share", "matrices"), [("all", 1), ("positions", 3), ("none", 12)])
def test_effconv_shares_matrices_as_asked(share, matrices):
    assert create_model("effconv_capsnet_tiny_test", share=share).classes.weight.shape[0] == matrices


def test_effconv_answers_an_unknown_way_to_share():
    with pytest.raises(REFUSED, match="share"):
        create_model("effconv_capsnet_tiny_test", share="some")


def test_parse_layers_are_each_others_children():
    model = create_model("parse_capsnet_tiny_test").eval()
    layers = model(torch.rand(2, 1, 20, 20), return_routing=True).layers
    assert [tuple(layer.routed.coupling.shape[1:]) for layer in layers] == [(3, 3), (3, 3), (3, 4)]
    for below, above in pairwise(layers):
        assert_close(above.children.poses, below.routed.poses)


def test_parse_capsnet_has_the_layers_of_the_thesis():
    with torch.device("meta"):
        model = create_model("parse_capsnet")
    assert [tuple(layer.weight.shape) for layer in model.capsules] == [(16, 8, 16, 8)] * 3 + [(16, 8, 10, 8)]


@pytest.mark.parametrize("data", ["mnist", "cifar10"])
def test_gamma_capsnet_of_the_thesis_holds_couplings_constant_and_scales_over_the_batch(data):
    with torch.device("meta"):
        thesis, authors = (create_model(f"gamma_capsnet_{data}{which}") for which in ("_thesis", ""))
    for model, found in ((thesis, ("last", "batch")), (authors, ("full", "sample"))):
        routings = [part for part in model.modules() if isinstance(part, ScaledDistanceRouting)]
        assert [(routing.gradient, routing.scope) for routing in routings] == [found] * 2


def test_gamma_capsnet_can_draw_from_all_capsules():
    model = create_model("gamma_capsnet_tiny_test", decoder="fc_unmasked").eval()
    batch = torch.rand(2, 1, 20, 20)
    first, second = (model(batch, torch.tensor(labels)).reconstruction for labels in ([0, 0], [1, 2]))
    assert_close(first, second)


def test_the_baseline_answers_with_probabilities_and_logits():
    output = create_model("conv_baseline_tiny_test").eval()(torch.rand(3, 1, 20, 20))
    assert_close(output.activations.sum(-1), torch.ones(3))
    assert_close(output.poses.squeeze(-1).softmax(-1), output.activations)


def test_the_baseline_drops_out_in_training_only():
    model, batch = create_model("conv_baseline_tiny_test"), torch.rand(2, 1, 20, 20)
    assert not torch.equal(model(batch).poses, model(batch).poses)
    assert torch.equal(model.eval()(batch).poses, model(batch).poses)


def test_padding_decides_the_size_of_the_baseline():
    """The paper quotes 35.4 million parameters: so it padded."""
    with torch.device("meta"):
        valid = create_model("conv_baseline", padding="valid")
    assert sum(p.numel() for p in valid.parameters()) == 13_277_970


def test_shared_matrices_make_an_aff_capsnet():
    with torch.device("meta"):
        model = create_model("dr_capsnet_mnist", routing="shared_matrix")
    assert sum(p.numel() for p in model.parameters()) == 6_804_384 - 1151 * 8 * 10 * 16


def test_poses_of_the_parse_network_keep_their_length_from_layer_to_layer():
    """Unit poses, pooled evenly by the initial matrices, have a length of 0.7 before the squash."""
    generator = torch.Generator().manual_seed(0)
    for layer in create_model("parse_capsnet").capsules:
        poses = torch.randn(200, layer.in_caps, layer.in_pose, generator=generator)
        votes = torch.einsum("bip,ipod->biod", torch.nn.functional.normalize(poses, dim=-1), layer.weight)
        pooled = votes.sum(1) / layer.weight.shape[2]
        assert pooled.square().sum(-1).mean().sqrt().item() == pytest.approx(0.7, rel=0.1)
