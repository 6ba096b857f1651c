"""Chapter 8, rotations as quaternions: the experiments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..plan import Changes, Claim, larger_metric, our_claim, register
from . import claims
from .claims import BORDERS, ROUTING, SOLIDS, TABLE, THESIS_MINUTES, name_of
from .predictions import draw_compared
from .setting import DEVIATIONS, METRICS, NETWORKS, PoseSetting, on_rotations, pose_setting

RANDOM, _THESIS, _INSTANCES = "random rotations", "split of the thesis", "new objects"


def _under_five_degrees(label: str, networks: Iterable[str]) -> Claim:
    return claims.under_five_degrees(label, tuple(name_of(each, RANDOM) for each in networks))


def _capsules_lead(label: str) -> Claim:
    others = tuple(name_of(network, RANDOM) for network in ("MLP", "ConvNet", "ConvNet, 6D head"))
    return our_claim(
        "The capsule network is ahead of the perceptron and the convolutional network of its size.",
        claims.ahead_of_all(label, name_of("EM-CapsNet", RANDOM), others),
    )


def _split_flatters(label: str, settings: Iterable[str]) -> Claim:
    return our_claim(
        "The thesis's split flatters: new rotations have larger errors than its test images.",
        larger_metric(label, "novel_error", "test_rotation_error", tuple(settings)),
    )


def _solids(network: str, split: str) -> PoseSetting:
    data = "cube_tetrahedron_thesis" if split == _THESIS else "cube_tetrahedron"
    return pose_setting(name_of(network, split), network, data)


_SMALL_MLP: Changes = {"model.name": "pose_mlp_small"}
_SYMMETRIES = {"loss.symmetries": ["cube", "tetrahedron"]}


def _borders(words: str, data: str, **changes: object) -> PoseSetting:
    return pose_setting(words, "MLP", data, changes={**_SMALL_MLP, **changes})


register(
    on_rotations(
        label=BORDERS,
        title="Cube and tetrahedron with and without coloured borders",
        gpu_minutes=15,
        settings=(
            _borders(f"borders, {_THESIS}", "cube_tetrahedron_thesis"),
            _borders(f"plain, {_THESIS}", "cube_tetrahedron_plain_thesis", **_SYMMETRIES),
            _borders(f"borders, {RANDOM}", "cube_tetrahedron"),
            _borders(f"plain, {RANDOM}", "cube_tetrahedron_plain", **_SYMMETRIES),
            _borders(
                f"plain, {RANDOM}, symmetric loss",
                "cube_tetrahedron_plain",
                **_SYMMETRIES,
                **{"loss.forgive": True},
            ),
        ),
        claims=(
            Claim(
                "With borders the network matches the true rotation better.",
                claims.less(  # of any budget: one network, and no training tells symmetric views apart
                    BORDERS,
                    "test_rotation_error",
                    f"borders, {_THESIS}",
                    f"plain, {_THESIS}",
                ),
            ),
            our_claim(
                "A loss that knows the symmetries learns plain solids up to them.",
                claims.less(
                    BORDERS,
                    "test_symmetric_error",
                    f"plain, {RANDOM}, symmetric loss",
                    f"plain, {RANDOM}",
                ),
            ),
            _split_flatters(BORDERS, (f"borders, {_THESIS}",)),
        ),
        deviations=DEVIATIONS,
    )
)
register(
    on_rotations(
        label=SOLIDS,
        title="Networks for the rotation of cube and tetrahedron",
        gpu_minutes=150,
        settings=tuple(_solids(network, split) for split in (RANDOM, _THESIS) for network in NETWORKS),
        claims=(
            _under_five_degrees(SOLIDS, NETWORKS),
            _capsules_lead(SOLIDS),
            our_claim(
                "Votes on one side of their mean give smaller errors than votes of any sign.",
                claims.less(
                    SOLIDS,
                    "test_rotation_error",
                    name_of("EM-CapsNet, hemisphere", RANDOM),
                    name_of("EM-CapsNet", RANDOM),
                ),
            ),
            our_claim(
                "Quaternion votes give smaller errors than votes by matrices.",
                claims.less(
                    SOLIDS,
                    "test_rotation_error",
                    name_of("EM-CapsNet, quaternion votes", RANDOM),
                    name_of("EM-CapsNet, hemisphere", RANDOM),
                ),
            ),
            _split_flatters(SOLIDS, (name_of(network, _THESIS) for network in NETWORKS)),
        ),
        deviations=("Not in the thesis, which trained a perceptron alone on these solids.", *DEVIATIONS),
    )
)

_TABLE_ROWS = {  # accuracy in percent, loss, and minutes of training
    name: {"test_accuracy": accuracy, "test_loss": loss, "training_minutes": THESIS_MINUTES[name]}
    for name, accuracy, loss in (
        ("MLP", 99.984, 0.00182),
        ("ConvNet", 100.0, 0.00384),
        ("EM-CapsNet", 100.0, 0.00416),
    )
}
_OF_TABLE = tuple(name_of(network, _THESIS) for network in _TABLE_ROWS)
_TABLE_NETWORKS = (*_TABLE_ROWS, "ConvNet, 6D head", "EM-CapsNet, quaternion votes")
_TABLE_DATA = {
    RANDOM: "tiny_meshes",
    _INSTANCES: "tiny_meshes_instances",
    _THESIS: "tiny_meshes_thesis",
}


def _meshes(network: str, split: str) -> PoseSetting:
    printed = _TABLE_ROWS.get(network) if split == _THESIS else None
    setting = pose_setting(name_of(network, split), network, _TABLE_DATA[split], classes=6, thesis=printed)
    return replace(setting, shows=split == RANDOM)


MESHES = register(
    on_rotations(
        label=TABLE,
        title="Class and rotation of meshes of six classes",
        gpu_minutes=240,
        settings=tuple(_meshes(network, split) for split in _TABLE_DATA for network in _TABLE_NETWORKS),
        draw=draw_compared,
        claims=(
            Claim(
                "The perceptron has the lowest loss.",
                claims.more_than_first("test_loss", *_OF_TABLE),
            ),
            _under_five_degrees(TABLE, _TABLE_NETWORKS),
            _capsules_lead(TABLE),
            our_claim(
                "The EM-CapsNet trains in less than an hour; the thesis's took nine days.",
                claims.in_minutes(TABLE, name_of("EM-CapsNet", RANDOM)),
            ),
            _split_flatters(TABLE, (name_of(network, _THESIS) for network in _TABLE_NETWORKS)),
            Claim(
                "The convolutional and the capsule network are more accurate than the perceptron.",
                claims.more_than_first("test_accuracy", *_OF_TABLE),
            ),
            Claim(
                "The capsule network takes longer to train than the convolutional network.",
                claims.more_than_first("training_minutes", *_OF_TABLE[1:]),
            ),
        ),
        deviations=(
            "TinyShapeNet is not published. Six classes of free meshes stand for it, up to ten objects each: "
            "animal, bike, car, chair, person, sofa. `torchcaps pose render` makes tiny_meshes/meshes.npz.",
            *DEVIATIONS,
        ),
        other_data=("test_accuracy", "test_loss", "training_minutes"),
    )
)
register(
    on_rotations(
        label=ROUTING,
        title="Routing annealing and pruning of the EM-CapsNet for rotations",
        gpu_minutes=40,
        metrics=(*METRICS, "iterations", "sparsity"),
        settings=(
            pose_setting("three rounds", "EM-CapsNet", "cube_tetrahedron"),
            pose_setting(
                "one round",
                "EM-CapsNet",
                "cube_tetrahedron",
                changes={"model.routing": {"name": "em", "iterations": 1}},
            ),
            pose_setting(
                "annealed",
                "EM-CapsNet",
                "cube_tetrahedron",
                changes={"patience": 0, "annealing": {"r0": 1, "r_max": 5, "step": 1, "patience": 3}},
            ),
            pose_setting(
                "pruned (REM)",
                "EM-CapsNet",
                "cube_tetrahedron",
                changes={"pruning": {"strength": 5e-4, "decay": 0.95}},
            ),
        ),
        claims=(
            our_claim(
                "Routing annealing gives smaller errors than three rounds.",
                claims.less(ROUTING, "test_rotation_error", "annealed", "three rounds"),
            ),
        ),
        deviations=("Not in the thesis.", *DEVIATIONS),
    )
)
