"""The settings of the chapter on rotations: a network, a dataset, and rotations it has not seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from torchcaps.data.rendering import leaked_share, thesis_poses
from torchcaps.train import evaluate_run, load_run

from ..plan import FIRST_SEED, Changes, Experiment, Job, Setting
from ..records import Budget, Details
from .predictions import PICTURE, predict_poses

CHAPTER = "Encoding rotation representations as quaternions"
METRICS = (
    "test_accuracy",
    "test_rotation_error",
    "test_rotation_error_mean",
    "test_rotation_error_95",
    "test_symmetric_error",
    "test_loss",
    "novel_error",
    "leaked_share",
    "training_minutes",
)
NETWORKS: Mapping[str, Changes] = {
    "MLP": {"model.name": "pose_mlp"},
    "ConvNet": {"model.name": "pose_convnet"},
    "ConvNet, 6D head": {"model.name": "pose_convnet_6d"},
    "EM-CapsNet": {"model.name": "em_posenet"},
    "EM-CapsNet, hemisphere": {"model.name": "em_posenet_hemisphere"},
    "EM-CapsNet, Markley": {
        "model.name": "em_posenet_hemisphere",
        "model.routing": {"name": "em_rotation", "average": "markley"},
    },
    "EM-CapsNet, quaternion votes": {"model.name": "em_posenet_quaternion"},
}
_SMOKE: Changes = {"data.limit": 40, "data.validation": 0.2, "batch_size": 8, "epochs": 1, "patience": 0}
_FAST: Changes = {"patience": 0, "optim.schedule": "cosine", "optim.floor": 1e-5}
BUDGETS: Mapping[Budget, Changes] = {
    "smoke": _SMOKE,
    "quick": {**_FAST, "epochs": 30, "data.limit": 65_536},
    "full": {**_FAST, "epochs": 100},
}
DEVIATIONS = (
    "Images are rendered by the rasteriser of the library, not by Blender; silhouettes agree, shadows are "
    "missing. The world gives 0.05 of light, which the thesis does not state.",
    "The learning rate falls to 1e-5 along a cosine over a fixed number of epochs; the thesis trained for up "
    "to 1,000 epochs with a patience of 50.",
    "The rotation loss is that of the true class's capsule; in the thesis it is that of the capsule with the "
    "highest activation, which says nothing of the object while the class is wrong.",
    "The thesis does not say how its test images were chosen. In its split, as we read it, a fifth of all "
    "images is drawn at random: it names no objects or rotations that were held out.",
)
_TINY = {"pose_mlp": "pose_mlp_tiny_test", "pose_convnet": "pose_convnet_tiny_test"}


@dataclass(frozen=True, kw_only=True)
class PoseSetting(Setting):
    """A network that learns rotations.

    Attributes:
        novel: A dataset of the same objects in rotations that were never seen, where the test images of its
            own dataset are not; its test images are looked at as well.
        shows: The first seed keeps pictures of some predictions.
    """

    novel: str = ""
    shows: bool = False


def tiny_model(name: str, classes: int) -> dict[str, object]:
    """The smallest network of the family of `name`."""
    sizes: dict[str, object] = {"image_size": 16, "num_classes": classes}
    for start, tiny in _TINY.items():
        if name.startswith(start):
            return {"name": tiny, **sizes}
    plain = {"votes": "matrix", "routing": "em"} if name == "em_posenet" else {}
    return {"name": "em_posenet_tiny_test", **sizes, **plain}


def pose_setting(
    name: str,
    network: str,
    data: str,
    *,
    classes: int = 2,
    changes: Changes | None = None,
    thesis: Mapping[str, float] | None = None,
) -> PoseSetting:
    """A network on a dataset; one whose name ends in `_thesis` is also tested on new rotations."""
    novel = data.removesuffix("_thesis") if data.endswith("_thesis") else ""
    model = NETWORKS[network]
    tiny = tiny_model(str(model["model.name"]), classes)
    return PoseSetting(
        name=name,
        network=network,
        recipe="pose/pose_convnet",
        changes={**model, "model.num_classes": classes, "data.name": data, **(changes or {})},
        budgets={"smoke": {"model": tiny, "data.name": f"synthetic_{data}"}},
        thesis=thesis or {},
        novel=novel,
    )


def learn_rotations(job: Job) -> None:
    """Train a network and test it, also on rotations that are certainly new."""
    run, setting, folder = job.run, job.run.setting, job.folder / "network"
    assert isinstance(setting, PoseSetting)
    trained = job.train_and_tidy(run.recipe, folder)
    metrics = {"training_minutes": trained.seconds / 60}
    if setting.novel:
        name = f"synthetic_{setting.novel}" if run.budget == "smoke" else setting.novel
        network = load_run(folder, job.device)
        found = evaluate_run(network, "test", data_name=name, data_dir=job.data_dir)
        metrics |= {"novel_error": found["rotation_error"], "leaked_share": leak_of_thesis()}
    outcome = trained.with_metrics(metrics)
    if setting.shows and run.seed == FIRST_SEED:
        seen = predict_poses(load_run(folder, job.device), job.data_dir)
        outcome = replace(outcome, details=Details(pictures={PICTURE: seen.packed()}))
    job.leave_result(outcome)


def leak_of_thesis() -> float:
    """The share of an object's test images whose rotation it was also trained on, in the thesis's split."""
    train_poses, test_poses = (thesis_poses(2, split) for split in ("train", "test"))
    return leaked_share(
        train_poses.rotations[train_poses.numbers == 0], test_poses.rotations[test_poses.numbers == 0]
    )


on_rotations = partial(
    Experiment,
    chapter=CHAPTER,
    data=(),
    seeds=3,
    metrics=METRICS,
    budgets=BUDGETS,
    perform=learn_rotations,
)
