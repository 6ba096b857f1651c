"""What rotations that are never seen twice give on meshes, where the rotation counts fully in the loss."""

from __future__ import annotations

from dataclasses import replace

from ..plan import Claim, TakeOver, register
from . import claims
from .claims import IMAGES
from .setting import DEVIATIONS, PoseSetting, learn_rotations, on_rotations, pose_setting
from .weights import NETWORKS, WEIGHTS, weighted

_HEMISPHERE = "EM-CapsNet, hemisphere"


def _same(network: str) -> str:
    return f"{network}, the same rotations in each epoch"


def _fresh(network: str) -> str:
    return f"{network}, fresh rotations"


def _learns(network: str, name: str, fresh: bool = True) -> PoseSetting:
    changes = {"loss.rotation_weight": 1.0, "data.fresh": fresh}
    return pose_setting(name, network, "tiny_meshes", classes=6, changes=changes)


_FRESH = (*NETWORKS, _HEMISPHERE)

register(
    on_rotations(
        label=IMAGES,
        title="Class and rotation of meshes, from rotations that are never seen twice",
        gpu_minutes=20,
        perform=TakeOver((WEIGHTS,), learn_rotations),
        settings=(
            *(
                replace(_learns(network, _same(network), fresh=False), reuses=weighted(network, 1.0))
                for network in NETWORKS
            ),
            *(_learns(network, _fresh(network)) for network in _FRESH),
        ),
        claims=(
            *(
                Claim(
                    f"{network}: in as many steps, rotations that are never seen twice give smaller errors.",
                    claims.less(IMAGES, "test_rotation_error", _fresh(network), _same(network)),
                )
                for network in NETWORKS
            ),
            claims.under_five_degrees(IMAGES, tuple(map(_fresh, _FRESH))),
        ),
        deviations=("Not in the thesis. The rotation counts fully, not 0.1.", *DEVIATIONS),
    )
)
