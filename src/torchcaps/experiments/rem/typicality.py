"""Beyond chapter 6: strange images, told by their parse trees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from torchcaps.data import LabelledImages
from torchcaps.parse import collect_keys, learn_trees, roc_auc
from torchcaps.train import load_split
from torchcaps.viz import to_png
from torchcaps.viz.auc import draw_auc

from ..plan import Claim, Experiment, PlannedRun, Rows, register
from . import claims
from .corruptions import CORRUPTIONS, corrupt
from .entropy import BEYOND, ENTROPY_TABLE
from .reuse import SHARED_RUNS, LookAgain, Trained, again
from .tables import MNIST_TABLE, SMOKE

_TABLES = (MNIST_TABLE, ENTROPY_TABLE)
_NETWORKS = {  # name here, and in its table
    "DR-CapsNet+Q": "DR-CapsNet+Q",
    "DR-CapsNet+REM": "DR-CapsNet+REM",
    "DR-CapsNet+entropy": "DR-CapsNet, entropy 0.1",
}
Score = Callable[[LabelledImages], NDArray[np.float64]]
_KINDS = ("fashion_mnist", *CORRUPTIONS)
_LENGTH = "capsule length"
_SCORES: dict[str, dict[str, Any]] = {
    "children, K = 11": {"surprise": "child_surprise", "levels": 11},
    "children, K = 21": {"surprise": "child_surprise", "levels": 21},
    "whole trees, K = 11": {"surprise": "key_surprise", "levels": 11},
    "whole trees, K = 21": {"surprise": "key_surprise", "levels": 21},
    _LENGTH: {},
}


def _tree_score(trained: Trained, surprise: str, levels: int) -> Score:
    """Surprise of a tree beside those of the training images."""
    network, pipeline, device = trained.run.model, trained.pipeline, trained.data.labels.device
    known, _ = load_split(trained.run.recipe.data, "train", trained.data_dir, device)
    model = learn_trees(collect_keys(network, known, pipeline, levels=levels))
    return lambda data: getattr(model, surprise)(collect_keys(network, data, pipeline, levels=levels))


def _length_score(trained: Trained) -> Score:
    """How short the longest class capsule is: what one would look at without trees."""

    @torch.no_grad()
    def score(data: LabelledImages) -> NDArray[np.float64]:
        parts = (trained.pipeline.for_evaluation(part)[1] for part in torch.split(data.images, 500))
        lengths = [trained.run.model(part).activations.amax(1) for part in parts]
        return -torch.cat(lengths).double().cpu().numpy()

    return score


def _tell_apart(trained: Trained, run: PlannedRun) -> tuple[dict[str, Any], dict[str, Any]]:
    """Area under the ROC of one score, for each kind of strange image."""
    asked = _SCORES[run.setting.options["score"]]
    score = _tree_score(trained, **asked) if asked else _length_score(trained)
    data = trained.data
    normal = score(data)
    other = replace(trained.run.recipe.data, name="fashion_mnist")
    clothes, _ = load_split(other, "test", trained.data_dir, data.labels.device)
    metrics = {"auc_fashion_mnist": roc_auc(normal, score(clothes))}
    for name in CORRUPTIONS:
        strange = LabelledImages(corrupt(data.images, name), data.labels, data.classes)
        metrics[f"auc_{name}"] = roc_auc(normal, score(strange))
    return metrics, {}


def draw_areas(rows: Rows, path: Path) -> None:
    """A chart for each network, a group for each kind of strange image."""
    panels: dict[str, dict[str, dict[str, float]]] = {}
    for row in rows:
        network, _, score = row["setting"].partition(", ")
        kind = row["metric"].removeprefix("auc_").replace("_", " ")
        panels.setdefault(network, {}).setdefault(score, {})[kind] = row["ours"]
    path.write_bytes(to_png(draw_auc(panels)))


register(
    Experiment(
        label="beyond:typicality",
        chapter=BEYOND,
        title="Strange images, told from test digits by how usual their parse trees are",
        data=("mnist", "fashion_mnist"),
        gpu_minutes=10,  # on top of the tables'
        at_once=1,  # they share the tables' runs
        metrics=tuple(f"auc_{kind}" for kind in _KINDS),
        budgets={"smoke": SMOKE},
        perform=LookAgain(_tell_apart, _TABLES),
        settings=tuple(
            again(_TABLES, of, name=f"{name}, {score}", options={"score": score})
            for name, of in _NETWORKS.items()
            for score in _SCORES
        ),
        draw=draw_areas,
        claims=(
            Claim(
                "The trees of a network with REM tell strange images better than those of one without.",
                claims.better_told("DR-CapsNet+Q, children, K = 11", "DR-CapsNet+REM, children, K = 11"),
            ),
            Claim(
                "Where few trees are an objective of the training, they tell strange images better still.",
                claims.better_told(
                    "DR-CapsNet+REM, children, K = 11", "DR-CapsNet+entropy, children, K = 11"
                ),
            ),
            Claim(
                "Trees tell strange images better than the length of the longest class capsule does.",
                claims.better_told(f"DR-CapsNet+REM, {_LENGTH}", "DR-CapsNet+REM, children, K = 11"),
            ),
        ),
        deviations=(
            SHARED_RUNS.format(" and ".join(table.label for table in _TABLES)),
            "Numbers are areas under the ROC; 0.5 is chance, and below it strange images look more usual "
            "than digits. Trees are compared with those of the training images, without augmentation.",
            "Strange are the test images of Fashion-MNIST, and the test digits with noise (deviation 0.3), "
            "blurred (deviation 2 pixels), with a grey square of 0.4 times the side at a random place, "
            "mirrored, and inverted. Mirrored digits are often digits still.",
        ),
    )
)
