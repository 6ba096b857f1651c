import numpy as np
import pytest
import torch
from torch import nn

from torchcaps.core import UserError
from torchcaps.models import create_model
from torchcaps.prune import Lobster, Pull, prunable_layers, prunable_weights

from refusal import REFUSED


def transcription(weight, gradients, *, strength, rate, zeros):
    """One epoch of the rule, scalar by scalar, with plain gradient descent as the optimizer."""
    result = weight.copy()
    for gradient in gradients:
        for place in np.ndindex(result.shape):
            theta, slope = result[place], gradient[place]
            theta = theta - strength * theta * max(0.0, 1.0 - abs(slope))
            theta = theta - rate * slope
            result[place] = 0.0 if zeros[place] else theta
    return result


def test_weights_that_are_computed_from_other_numbers_are_left_alone():
    names = [name for name, _ in prunable_layers(create_model("em_posenet_tiny_test"))]
    assert names == ["stem", "activations", "poses"]
    plain = create_model("em_posenet_tiny_test", votes="matrix")
    assert "classes" in [name for name, _ in prunable_layers(plain)]


def test_the_update_is_that_of_the_thesis():
    random = np.random.default_rng(0)
    weights = [random.normal(size=shape) for shape in ((3, 4), (2, 2, 2))]
    weights[0][1, 2] = weights[1][0, 0, 1] = 0.0
    gradients = [[2 * random.normal(size=weight.shape) for _ in range(5)] for weight in weights]
    parameters = [nn.Parameter(torch.from_numpy(weight.copy())) for weight in weights]
    pull = Pull(parameters, Lobster(strength=0.05, decay=0.5))
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    for epoch in (0, 2):  # the strength falls, the mask is that of the epoch's start
        pull.start_epoch(epoch)
        for step in range(5):
            for parameter, slopes in zip(parameters, gradients, strict=True):
                parameter.grad = torch.from_numpy(slopes[step].copy())
            pull.shrink()
            optimizer.step()
            pull.keep_zeros()
        weights = [
            transcription(weight, slopes, strength=0.05 * 0.5**epoch, rate=0.1, zeros=weight == 0)
            for weight, slopes in zip(weights, gradients, strict=True)
        ]
    for parameter, weight in zip(parameters, weights, strict=True):
        # the strength is kept in float32
        np.testing.assert_allclose(parameter.detach().numpy(), weight, rtol=0, atol=1e-7)


def test_cut_weights_stay_zero_under_the_momentum_of_adam():
    parameter = nn.Parameter(torch.randn(50))
    optimizer = torch.optim.Adam([parameter], lr=0.1)
    pull = Pull([parameter], Lobster())

    def step():
        optimizer.zero_grad()
        parameter.square().sum().backward()
        pull.shrink()
        optimizer.step()
        pull.keep_zeros()

    pull.start_epoch(0)
    step()
    with torch.no_grad():
        parameter[:20] = 0.0
    pull.start_epoch(1)
    for _ in range(3):
        step()
    assert not parameter[:20].any()
    assert parameter[20:].all()


def test_only_insensitive_weights_are_pulled():
    parameter = nn.Parameter(torch.tensor([1.0, 1.0, 1.0, 1.0], dtype=torch.float64))
    pull = Pull([parameter], Lobster(strength=0.5))
    parameter.grad = torch.tensor([0.0, 0.5, -1.0, 3.0], dtype=torch.float64)
    pull.shrink()
    assert parameter.tolist() == [0.5, 0.75, 1.0, 1.0]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("dr_capsnet_tiny_test", ["stem", "primary.conv", "classes"]),
        ("gamma_capsnet_tiny_test", ["stem", "primary.conv", "hidden", "classes"]),
    ],
)
def test_convolutions_and_capsule_layers_are_listed_and_the_decoder_is_not(model, expected):
    assert [name for name, _ in prunable_layers(create_model(model))] == expected


def test_deepcaps_lists_its_three_dimensional_convolution_and_its_decoder_on_request():
    network = create_model("deepcaps_tiny_test")
    names = [name for name, _ in prunable_layers(network)]
    assert "cells.3.skip.conv" in names
    assert "classes" in names
    assert not any(name.startswith("decoder") for name in names)
    asked = list(prunable_layers(network, "decoder*"))
    assert len(asked) == 4
    assert all(isinstance(layer, nn.ConvTranspose2d) for _, layer in asked)


def test_a_frozen_layer_is_not_pruned():
    network = create_model("dr_capsnet_tiny_test")
    network.stem.weight.requires_grad_(False)
    assert len(prunable_weights(network)) == 2
    with pytest.raises(UserError, match="none is named 'stem'"):
        prunable_weights(network, "stem")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"strength": -0.1}, "strength must lie between 0 and 1"),
        ({"decay": 1.5}, "decay must lie between"),
        ({"patience": 0}, "patience is -1"),
        ({"patience": -2}, "patience is -1"),
        ({"tolerance": -0.1}, "tolerance must not be negative"),
        ({"tolerance": float("nan")}, "tolerance must not be negative"),
        ({"search_images": -1}, "search_images must not be negative"),
        ({"group": "layer"}, "group"),
    ],
)
def test_bad_settings_are_refused(setting, message):
    with pytest.raises(REFUSED, match=message):
        Lobster(**setting)


def test_a_decoder_of_another_name_is_left_alone_too():
    network = create_model("segcaps_tiny_test")
    assert not [name for name, _ in prunable_layers(network) if name.startswith("reconstruction")]
    assert [name for name, _ in prunable_layers(network, "reconstruction*")] == [
        "reconstruction.0",
        "reconstruction.2",
        "reconstruction.4",
    ]


def test_a_pull_before_the_backward_pass_is_refused():
    network = create_model("dr_capsnet_tiny_test")
    with pytest.raises(UserError, match=r"call shrink after loss\.backward"):
        Pull(prunable_weights(network), Lobster()).shrink()
