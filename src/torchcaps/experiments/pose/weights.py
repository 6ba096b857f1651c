"""How much the rotation must count in the loss: meshes of six classes, where the class is hard too."""

from __future__ import annotations

from ..plan import Claim, register
from . import claims
from .claims import WEIGHT
from .setting import DEVIATIONS, PoseSetting, on_rotations, pose_setting

_NETWORKS = ("MLP", "ConvNet, 6D head", "EM-CapsNet", "EM-CapsNet, hemisphere")
_THESIS_WEIGHT = 0.1
_WEIGHTS = (_THESIS_WEIGHT, 1.0, 10.0)


def _name(network: str, weight: float) -> str:
    return f"{network}, weight {weight:g}"


def _setting(network: str, weight: float) -> PoseSetting:
    changes = {"loss.rotation_weight": weight}
    return pose_setting(_name(network, weight), network, "tiny_meshes", classes=6, changes=changes)


register(
    on_rotations(
        label=WEIGHT,
        title="Class and rotation of meshes in random rotations, by the weight of the rotation in the loss",
        gpu_minutes=90,
        settings=tuple(_setting(network, weight) for network in _NETWORKS for weight in _WEIGHTS),
        claims=(
            *(
                Claim(
                    f"{network}: a larger weight than the thesis's gives smaller errors.",
                    claims.less(
                        WEIGHT, "test_rotation_error", _name(network, 10.0), _name(network, _THESIS_WEIGHT)
                    ),
                )
                for network in _NETWORKS
            ),
            claims.under_five_degrees(
                WEIGHT, tuple(_name(network, weight) for network in _NETWORKS for weight in _WEIGHTS)
            ),
        ),
        deviations=("Not in the thesis, whose weight is 0.1.", *DEVIATIONS),
    )
)
