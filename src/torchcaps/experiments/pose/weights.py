"""How much the rotation must count in the loss: meshes of six classes, where the class is hard too."""

from __future__ import annotations

from dataclasses import replace

from ..plan import our_claim, register, take_over
from . import claims
from .claims import WEIGHT, name_of
from .runs import MESHES, RANDOM
from .setting import DEVIATIONS, PoseSetting, learn_rotations, on_rotations, pose_setting

NETWORKS = ("MLP", "ConvNet, 6D head", "EM-CapsNet")
_THESIS_WEIGHT = 0.1
_TOO_MUCH = 10.0  # costs accuracy, which one network is enough to show
_SETTINGS = (
    *((network, weight) for network in NETWORKS for weight in (_THESIS_WEIGHT, 1.0)),
    ("MLP", _TOO_MUCH),
)


def weighted(network: str, weight: float) -> str:
    """The setting of a network and a weight."""
    return f"{network}, weight {weight:g}"


def _setting(network: str, weight: float) -> PoseSetting:
    changes = {"loss.rotation_weight": weight}
    setting = pose_setting(weighted(network, weight), network, "tiny_meshes", classes=6, changes=changes)
    is_made = weight == _THESIS_WEIGHT  # by the table
    return replace(setting, reuses=name_of(network, RANDOM)) if is_made else setting


WEIGHTS = register(
    on_rotations(
        label=WEIGHT,
        title="Class and rotation of meshes in random rotations, by the weight of the rotation in the loss",
        gpu_minutes=20,
        perform=take_over((MESHES,), learn_rotations),
        settings=tuple(_setting(*each) for each in _SETTINGS),
        claims=(
            *(
                our_claim(
                    f"{network}: ten times the thesis's weight gives smaller errors.",
                    claims.less(
                        WEIGHT,
                        "test_rotation_error",
                        weighted(network, 1.0),
                        weighted(network, _THESIS_WEIGHT),
                    ),
                )
                for network in NETWORKS
            ),
            claims.under_five_degrees(WEIGHT, tuple(weighted(*each) for each in _SETTINGS)),
        ),
        deviations=("Not in the thesis, whose weight is 0.1.", *DEVIATIONS),
    )
)
