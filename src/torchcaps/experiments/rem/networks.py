"""The networks of the REM chapter's tables, the images they see, and what the thesis prints of each."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from ..plan import Values
from .setting import Schedule, TreeSetting, rem_pair


class Network(NamedTuple):
    """A network of the tables."""

    name: str
    model: Values
    levels: int | tuple[int, ...] = 11
    quick: Schedule = Schedule()
    smoke: Values | None = None  # the model of a smoke budget, when the real one is slow
    keep_epochs: tuple[int, ...] = ()
    note: str = ""  # how it differs from the thesis's network; its figures are then not set beside it


class Figures(NamedTuple):
    """What the thesis prints of a network with quantized couplings, with REM, and as it is."""

    accuracy: float
    entropy: float
    rem_accuracy: float
    rem_entropy: float
    rem_sparsity: float
    vanilla: float | None = None
    parameters: int | None = None  # rounded to two or three digits
    rem_parameters: int | None = None  # those that pruning leaves


def table_pair(
    network: Network, data: Values, figures: Figures | None, dataset: str = ""
) -> tuple[TreeSetting, TreeSetting]:
    """A network of the tables, both ways, with what the thesis prints of it."""
    plain, rem = rem_pair(
        f"{dataset}, {network.name}" if dataset else network.name,
        _RECIPE,
        {"model": network.model, "data": data, "keep_epochs": list(network.keep_epochs)},
        levels=network.levels,
        quick=network.quick,
        smoke={} if network.smoke is None else {"model": network.smoke},
        note=network.note,
    )
    if figures is None:
        return plain, rem
    printed = {
        "test_accuracy": figures.vanilla,
        "quantized_accuracy": figures.accuracy,
        "entropy": figures.entropy,
        "parameters_left": figures.parameters,
    }
    printed_rem = {
        "quantized_accuracy": figures.rem_accuracy,
        "entropy": figures.rem_entropy,
        "sparsity": figures.rem_sparsity,
        "parameters_left": figures.rem_parameters,
    }
    return replace(plain, thesis=_known(printed)), replace(rem, thesis=_known(printed_rem))


def _known(figures: dict[str, float | None]) -> dict[str, float]:
    return {metric: value for metric, value in figures.items() if value is not None}


_RECIPE = "mnist/dr_capsnet_thesis"
_ROUTING: Values = {"routing": {"name": "dynamic", "gradient": "last"}}
_FEW: Values = {"stem_channels": 8, "primary_types": 4}
KEPT = (1, 2, 3, 5, 8, 12, 16, 20, 25, 30, 35, 40, 60, 100, 150, 200, 300, 500, 1000)
DR = Network(
    "DR-CapsNet",
    {"name": "dr_capsnet_mnist", **_ROUTING},
    smoke={"name": "dr_capsnet_mnist", **_FEW, **_ROUTING},
)
GAMMA = Network(
    "gamma-CapsNet, thesis gradient",
    {"name": "gamma_capsnet_mnist_thesis"},
    (11, 6),
    Schedule(40, 0.93),
    smoke={"name": "gamma_capsnet_mnist_thesis", **_FEW},
)
GAMMA_FULL = GAMMA._replace(
    name="gamma-CapsNet",
    model={"name": "gamma_capsnet_mnist"},
    smoke={"name": "gamma_capsnet_mnist", **_FEW},
    note="gradient through all rounds and distances by sample, unlike the thesis",
)
GAMMA_WIDE = GAMMA._replace(
    name="gamma-CapsNet, thesis gradient, matrices of 1",
    model={"name": "gamma_capsnet_mnist_thesis", "init_std": 1.0},
    smoke={"name": "gamma_capsnet_mnist_thesis", "init_std": 1.0, **_FEW},
    note="matrices start with a deviation of 1, in the thesis's code with 0.1",
)
DEEP = Network("DeepCaps, thesis port", {"name": "deepcaps_28_thesis"}, (0, 11), Schedule(10, 0.8, 1e-3))
DEEP_OF_AUTHORS = DEEP._replace(
    name="DeepCaps",
    model={"name": "deepcaps_28"},
    levels=11,
    note="the network of its authors, the routed skip quantized too, unlike the thesis",
)
EFFICIENT = Network("Efficient-CapsNet", {"name": "efficient_capsnet_mnist"})
_IN_COLOUR: Values = {"in_channels": 3, "image_size": 32}
_SVHN_SIZES: Values = {"stem_channels": 64, "primary_types": 16, "primary_pose": 6, "class_pose": 8}
OF_COLOUR = {
    "dr": DR._replace(
        model={"name": "dr_capsnet_cifar10", **_ROUTING},
        smoke={"name": "dr_capsnet_cifar10", **_FEW, **_ROUTING},
    ),
    "dr_svhn": DR._replace(
        model={"name": "dr_capsnet_mnist", **_IN_COLOUR, **_SVHN_SIZES, **_ROUTING},
        smoke={"name": "dr_capsnet_mnist", **_IN_COLOUR, **_FEW, **_ROUTING},
    ),
    "dr_32": DR._replace(
        name="DR-CapsNet at 32 px",
        model={"name": "dr_capsnet_cifar10_32", **_ROUTING},
        smoke={"name": "dr_capsnet_cifar10_32", **_FEW, **_ROUTING},
    ),
    "gamma": GAMMA._replace(
        model={"name": "gamma_capsnet_cifar10_thesis"},
        smoke={"name": "gamma_capsnet_cifar10_thesis", **_FEW},
    ),
    "gamma_full": GAMMA_FULL._replace(
        model={"name": "gamma_capsnet_cifar10"}, smoke={"name": "gamma_capsnet_cifar10", **_FEW}
    ),
    "deep": DEEP._replace(model={"name": "deepcaps_64_thesis"}),
    "efficient": EFFICIENT._replace(
        name="Efficient-CapsNet, 16 children", model={"name": "efficient_capsnet_32"}
    ),
    "efficient_144": EFFICIENT._replace(
        model={"name": "efficient_capsnet_mnist", **_IN_COLOUR},
        note="144 children, where the thesis has 16",
    ),
    "effconv": Network(
        "Eff-ConvCapsNet",
        {"name": "effconv_capsnet_64", **_ROUTING},
        21,
        smoke={
            "name": "effconv_capsnet_tiny_test",
            "in_channels": 3,
            "image_size": 64,
            "num_classes": 10,
            "decoder": "none",
        },
    ),
}
_BRIGHTNESS = {"brightness_gain": 0.25, "contrast": [0.2, 1.8]}
_JITTER = {"augment": {"flip": True, **_BRIGHTNESS}}
DATA: dict[str, Values] = {
    "mnist": {"name": "mnist", "augment": {"shift": 2}},
    "fashion": {"name": "fashion_mnist", "augment": {"shift": 2, "flip": True}},
    "cifar10": {"name": "cifar10", **_JITTER},
    "cifar10_24": {"name": "cifar10", "preprocess": {"resize": 24}, **_JITTER},
    "cifar10_64": {"name": "cifar10", "preprocess": {"resize": 64}, **_JITTER},
    "imagenette": {"name": "imagenette", "validation": 0.1, "preprocess": {"resize": 64}, **_JITTER},
    "svhn": {"name": "svhn", "augment": _BRIGHTNESS},
    "svhn_64": {"name": "svhn", "preprocess": {"resize": 64}, "augment": _BRIGHTNESS},
}
