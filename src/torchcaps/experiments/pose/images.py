"""What rotations that are never seen twice give on meshes, where the rotation counts fully in the loss.

The training image that looks most alike stands beside the networks.
"""

from __future__ import annotations

from dataclasses import replace

from ..plan import Job, our_claim, register, take_over
from . import claims
from .claims import IMAGES
from .nearest import look_up_rotations
from .setting import DEVIATIONS, PoseSetting, learn_rotations, on_rotations, pose_setting
from .weights import NETWORKS, WEIGHTS, weighted

_HEMISPHERE = "EM-CapsNet, hemisphere"
_LOOKS = "nothing is trained; each seed draws other training images, 65,536 in the quick budget"
_NEAREST = "the training image that looks most alike"


def _same(network: str) -> str:
    return f"{network}, the same rotations in each epoch"


def _fresh(network: str) -> str:
    return f"{network}, fresh rotations"


def _learns(network: str, name: str, fresh: bool = True) -> PoseSetting:
    changes = {"loss.rotation_weight": 1.0, "data.fresh": fresh}
    return pose_setting(name, network, "tiny_meshes", classes=6, changes=changes)


def _learn_or_look_up(job: Job) -> None:
    perform = look_up_rotations if job.run.setting.name == _NEAREST else learn_rotations
    perform(job)


_FRESH = (*NETWORKS, _HEMISPHERE)

register(
    on_rotations(
        label=IMAGES,
        title="Class and rotation of meshes, from rotations that are never seen twice",
        gpu_minutes=20,
        perform=take_over((WEIGHTS,), _learn_or_look_up),
        settings=(
            *(
                replace(_learns(network, _same(network), fresh=False), reuses=weighted(network, 1.0))
                for network in NETWORKS
            ),
            *(_learns(network, _fresh(network)) for network in _FRESH),
            replace(_learns("MLP", _NEAREST, fresh=False), network=_NEAREST, note=_LOOKS),
        ),
        claims=(
            *(
                our_claim(
                    f"{network}: in as many steps, rotations that are never seen twice give smaller errors.",
                    claims.less(IMAGES, "test_rotation_error", _fresh(network), _same(network)),
                )
                for network in NETWORKS
            ),
            our_claim(
                "The training image that looks most alike is nearer in rotation than what networks say that "
                "learnt from as many images.",
                claims.ahead_of_all(IMAGES, _NEAREST, tuple(map(_same, NETWORKS))),
            ),
            claims.under_five_degrees(IMAGES, (*map(_fresh, _FRESH), _NEAREST)),
        ),
        deviations=("Not in the thesis. The rotation counts fully, not 0.1.", *DEVIATIONS),
    )
)
