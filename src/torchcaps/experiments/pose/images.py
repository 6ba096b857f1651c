"""How many rotations a network must see to find those of meshes; they count fully in the loss."""

from __future__ import annotations

from dataclasses import replace

from ..plan import Claim, TakeOver, register
from . import claims
from .claims import IMAGES
from .setting import (
    DEVIATIONS,
    QUICK_EPOCHS,
    QUICK_IMAGES,
    PoseSetting,
    learn_rotations,
    on_rotations,
    pose_setting,
)
from .weights import WEIGHTS, weighted

_NETWORK = "MLP"  # trains on two CPU cores
_USUAL = QUICK_IMAGES, QUICK_EPOCHS
# images and epochs: as many steps with a quarter and with four times the images, then four times the steps
_QUICK = ((16_384, 120), _USUAL, (262_144, 8), (262_144, 30))


def _name(images: int, epochs: int) -> str:
    return f"{_NETWORK}, {images:,} images, {epochs} epochs"


def _setting(images: int, epochs: int) -> PoseSetting:
    setting = _learns(_NETWORK, _name(images, epochs))
    quick = {"data.limit": images, "epochs": epochs}
    made = weighted(_NETWORK, 1.0) if (images, epochs) == _USUAL else ""
    return replace(setting, budgets={**setting.budgets, "quick": quick}, reuses=made)


def _learns(network: str, name: str, **changes: object) -> PoseSetting:
    changes = {"loss.rotation_weight": 1.0, **changes}
    return pose_setting(name, network, "tiny_meshes", classes=6, changes=changes)


def _fresh(network: str) -> str:
    return f"{network}, fresh rotations in each epoch"


_FEW, _SAME, _MANY, _LONG = (_name(*each) for each in _QUICK)
_NETWORKS = (_NETWORK, "ConvNet, 6D head", "EM-CapsNet", "EM-CapsNet, hemisphere")

register(
    on_rotations(
        label=IMAGES,
        title="Class and rotation of meshes in random rotations, by the number of rotations seen",
        gpu_minutes=40,
        perform=TakeOver((WEIGHTS,), learn_rotations),
        settings=(
            *(_setting(*each) for each in _QUICK),
            *(_learns(network, _fresh(network), **{"data.fresh": True}) for network in _NETWORKS),
        ),
        claims=(
            Claim(
                "In as many steps, four times the images give smaller errors.",
                claims.less(IMAGES, "test_rotation_error", _MANY, _SAME),
            ),
            Claim(
                "In as many steps, a quarter of the images gives larger errors.",
                claims.less(IMAGES, "test_rotation_error", _SAME, _FEW),
            ),
            Claim(
                "Four times the images and steps give smaller errors than four times the images.",
                claims.less(IMAGES, "test_rotation_error", _LONG, _MANY),
            ),
            Claim(
                "In as many steps, rotations that are never seen twice give smaller errors.",
                claims.less(IMAGES, "test_rotation_error", _fresh(_NETWORK), _SAME),
            ),
            claims.under_five_degrees(IMAGES, (_FEW, _SAME, _MANY, _LONG, *map(_fresh, _NETWORKS))),
        ),
        deviations=("Not in the thesis. The rotation counts fully, not 0.1.", *DEVIATIONS),
    )
)
