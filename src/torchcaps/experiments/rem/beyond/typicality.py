"""Beyond chapter 6: strange images, detected by their parse trees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from torchcaps.data import LabelledImages
from torchcaps.parse import collect_keys, learn_trees, roc_auc
from torchcaps.train import load_labelled
from torchcaps.viz import Measured, draw_bars, measure_seeds, to_png

from ...plan import BEYOND, SMOKE, Experiment, our_claim, register
from ...records import Details, Rows
from ..frozen_decoder import class_capsules
from ..reuse import SHARED_RUNS, Metrics, Trained, look_again, reused
from ..tables import MNIST_TABLE
from . import claims
from .corruptions import CORRUPTIONS, corrupt
from .entropy import ENTROPY_TABLE

_TABLES = (MNIST_TABLE, ENTROPY_TABLE)
_NETWORKS = {  # name here, and in its table
    "DR-CapsNet+Q": "DR-CapsNet+Q",
    "DR-CapsNet+REM": "DR-CapsNet+REM",
    "DR-CapsNet+entropy": "DR-CapsNet, entropy 0.1",
}
Score = Callable[[LabelledImages], NDArray[np.float64]]
_KINDS = ("fashion_mnist", *CORRUPTIONS)
_LENGTH = "capsule length"


class _Surprise(NamedTuple):
    """How surprising a tree is, by its children or as a whole, with so many levels."""

    of: Literal["children", "whole tree"]
    levels: int


_SCORES: dict[str, _Surprise | None] = {
    "children, K = 11": _Surprise("children", 11),
    "children, K = 21": _Surprise("children", 21),
    "whole trees, K = 11": _Surprise("whole tree", 11),
    "whole trees, K = 21": _Surprise("whole tree", 21),
    _LENGTH: None,
}


def _tree_score(trained: Trained, surprise: _Surprise) -> Score:
    """Surprise of a tree beside those of the training images."""
    network, pipeline = trained.run.model, trained.pipeline
    known, _ = load_labelled(trained.run, "train", data_dir=trained.data_dir)
    model = learn_trees(collect_keys(network, known, pipeline, levels=surprise.levels))
    score = model.child_surprise if surprise.of == "children" else model.key_surprise
    return lambda data: score(collect_keys(network, data, pipeline, levels=surprise.levels))


def _length_score(trained: Trained) -> Score:
    """How short the longest class capsule is, the usual score without trees."""

    def score(data: LabelledImages) -> NDArray[np.float64]:
        _, activations = class_capsules(trained.run.model, data.images, trained.pipeline)
        return -activations.amax(1).double().cpu().numpy()

    return score


def _tell_apart(trained: Trained) -> tuple[Metrics, Details]:
    """Area under the ROC of one score, for each kind of strange image."""
    surprise = _SCORES[trained.setting.variant]
    score = _length_score(trained) if surprise is None else _tree_score(trained, surprise)
    data = trained.data
    normal = score(data)
    clothes, _ = load_labelled(trained.run, "test", data_name="fashion_mnist", data_dir=trained.data_dir)
    metrics: Metrics = {"auc_fashion_mnist": roc_auc(normal, score(clothes))}
    for name in CORRUPTIONS:
        strange = LabelledImages(corrupt(data.images, name), data.labels, data.classes)
        metrics[f"auc_{name}"] = roc_auc(normal, score(strange))
    return metrics, Details()


def draw_areas(rows: Rows) -> bytes:
    """A chart for each network, a group for each kind of strange image."""
    charts: dict[str, dict[str, dict[str, Measured]]] = {}
    for row in rows:
        kind = row.metric.removeprefix("auc_").replace("_", " ")
        of_score = charts.setdefault(row.network, {}).setdefault(row.variant, {})
        of_score[kind] = measure_seeds([run.value for run in row.runs])
    return to_png(draw_bars(charts, unit="area under the ROC", most=1, chance=0.5))


register(
    Experiment(
        label="beyond:typicality",
        chapter=BEYOND,
        title="Strange images, detected by how unusual their parse trees are",
        data=("mnist", "fashion_mnist"),
        gpu_minutes=10,  # on top of the tables'
        at_once=1,  # they share the tables' runs
        metrics=tuple(f"auc_{kind}" for kind in _KINDS),
        budgets={"smoke": SMOKE},
        perform=look_again(_tell_apart, _TABLES),
        settings=tuple(
            replace(reused(_TABLES, of), name=f"{name}, {score}", network=name, variant=score)
            for name, of in _NETWORKS.items()
            for score in _SCORES
        ),
        draw=draw_areas,
        claims=(
            our_claim(
                "Trees detect strange images better in a network with REM than in one without.",
                claims.detected_better("DR-CapsNet+Q, children, K = 11", "DR-CapsNet+REM, children, K = 11"),
            ),
            our_claim(
                "Trees detect strange images better still where few trees are an objective of the training.",
                claims.detected_better(
                    "DR-CapsNet+REM, children, K = 11", "DR-CapsNet+entropy, children, K = 11"
                ),
            ),
            our_claim(
                "Trees detect strange images better than the length of the longest class capsule does.",
                claims.detected_better(
                    f"DR-CapsNet+REM, {_LENGTH}", "DR-CapsNet+REM, children, K = 11", in_same_networks=True
                ),
            ),
        ),
        deviations=(
            SHARED_RUNS.format(" and ".join(table.label for table in _TABLES)),
            "Numbers are areas under the ROC; 0.5 is chance, and below it strange images look more usual "
            "than digits. Trees are compared with those of the training images, without augmentation.",
            "The strange images are the test images of Fashion-MNIST, and the test digits with noise "
            "(deviation 0.3), blurred (deviation 2 pixels), with a grey square of 0.4 times the side at a "
            "random place, mirrored, and inverted. Many mirrored digits are still digits.",
        ),
    )
)
