"""The networks that are compared, at equal parameters for one size of image."""

from __future__ import annotations

from types import MappingProxyType
from typing import NamedTuple

from ..plan import SMOKE as _SMOKE
from ..plan import Changes, Values

DR, ONE_ROUND, GAMMA, SHARED = "DR-CapsNet", "DR-CapsNet, one round", "gamma-CapsNet", "shared matrices"
ENTROPY, REM = "DR-CapsNet, entropy objective", "DR-CapsNet+REM"
CONV, VIT = "convolutional network", "vision transformer"
CAPSULES = "mnist/dr_capsnet_thesis"
_ROUTING: Values = {"name": "dynamic", "gradient": "last"}
PLAIN: Changes = {"loss": {"name": "cross_entropy"}}
SMOKE: Changes = {**_SMOKE, "data.limit": 60}


class Compared(NamedTuple):
    """A network of a comparison, as changes of the recipe of DR-CapsNet."""

    name: str
    model: Values
    changes: Changes = MappingProxyType({})

    @property
    def has_capsules(self) -> bool:
        """Whether it routes."""
        return self.name not in (CONV, VIT)


def small_networks(size: int, classes: int, channels: int = 1) -> dict[str, Compared]:
    """Networks with as many parameters as a DR-CapsNet of 64 channels and 8 capsule types, within 5 %.

    Shared matrices and one round have the convolutions of DR-CapsNet; the former have fewer parameters.
    """
    image: Values = {"image_size": size, "in_channels": channels, "num_classes": classes}
    small: Values = {"stem_channels": 64, "primary_types": 8, **image}
    capsules: Values = {"name": "dr_capsnet_mnist", **small}
    votes = ((size - 16) // 2) ** 2 * 8  # primary capsules
    target = 64 * 81 * (channels + 64) + 128 + votes * classes * 128
    hidden_caps = max(2, round(votes * classes * 128 / (votes * 64 + classes * 128)))
    gamma: Values = {"name": "gamma_capsnet_mnist", **small, "hidden_caps": hidden_caps}
    found = [
        Compared(DR, {**capsules, "routing": _ROUTING}),
        Compared(ONE_ROUND, {**capsules, "routing": {**_ROUTING, "iterations": 1}}),
        Compared(GAMMA, gamma),
        Compared(SHARED, {**capsules, "routing": "shared_matrix"}),
    ]
    return {each.name: each for each in found} | without_capsules(size, classes, channels, target)


def without_capsules(size: int, classes: int, channels: int, parameters: int) -> dict[str, Compared]:
    """The convolutional network and the vision transformer with as many parameters, within 5 %."""
    image: Values = {"image_size": size, "in_channels": channels, "num_classes": classes}
    found = (
        Compared(CONV, {"name": "strided_convnet", **image, **_conv_sizes(size, parameters)}, PLAIN),
        Compared(VIT, {"name": "vit_small", **image, **_vit_sizes(parameters, channels)}, _VIT_TRAINING),
    )
    return {each.name: each for each in found}


# With tokens linear in patches of 4 px and a rate that falls at once, it stayed at chance on PartWhole.
_VIT_TRAINING: Changes = {
    **PLAIN,
    "optim.name": "adamw",
    "optim.schedule": "cosine",
    "optim.warm_up": 2,
    "optim.weight_decay": 0.05,
}


_LARGE_VIT = 3_000_000  # parameters: from here on layers of width 128 would be more than twenty
_SMALL_CONV = 500_000  # parameters: for fewer, 32 to 256 channels leave too little for a dense layer


def _conv_sizes(size: int, target: int) -> Values:
    """Four convolutions, and a dense layer that takes the rest of the parameters."""
    first = 32 if target > _SMALL_CONV else 16
    channels = [first, 2 * first, 4 * first, 8 * first]
    spent = 9 * (first + 42 * first**2) + 2 * sum(channels)
    places = (-(-size // 16)) ** 2
    return {"channels": channels, "hidden": max(8, round((target - spent) / (channels[-1] * places + 10)))}


def _vit_sizes(target: int, channels: int) -> Values:
    """Layers of one width; what a whole number of them leaves goes into their dense layers."""
    width = 128 if target < _LARGE_VIT else 384
    first = width // 4  # channels of all but the last convolution of the stem
    stem = 9 * (channels * first + first**2 + first * width)
    fixed = 10_000 + stem  # positions and classes, and convolutions
    attention = 4 * width**2 + 8 * width
    depth = max(1, round((target - fixed) / (attention + 4 * width**2)))
    hidden = ((target - fixed) / depth - attention) / (2 * width)
    return {"stem": "conv", "patch": 8, "width": width, "depth": depth, "hidden": max(64, round(hidden))}
