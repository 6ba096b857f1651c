"""Runs side by side as the REM chapter looks at them: accuracy, parse trees and sparsity."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torchcaps.parse import Levels, analyse_run
from torchcaps.prune import Lobster, count_sparsity
from torchcaps.train import Recipe, Run
from torchcaps.zoo import given_name


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """A run, measured on its test images.

    Attributes:
        levels: Of the couplings to the classes.
        even_accuracy: With even couplings, that is without routing.
        pruned: Whether it was trained with pruning.
        sparsity: Zeros among the weights of the pruned layers; `sparsity_total` among all.
        classes: Trees of each class, as `Dictionary.rows` has them.
    """

    run: str
    pruned: bool
    images: int
    levels: int
    accuracy: float
    quantized_accuracy: float
    even_accuracy: float
    entropy: float
    keys: int
    sparsity: float
    sparsity_total: float
    parameters_left: int
    classes: list[dict[str, Any]]


def with_rem(recipe: Recipe) -> Recipe:
    """The recipe with pruning: as it says itself, else once the loss has not fallen for three epochs.

    Pruned after every epoch, as in the thesis, a network on few images is cut before it has learnt.
    """
    return recipe if recipe.pruning is not None else replace(recipe, pruning=Lobster(patience=3))


def summarise_run(run: Run, *, levels: Levels = "even", data_dir: Path | None = None) -> RunSummary:
    """Measure a run on its test images."""
    found = analyse_run(run, "test", levels=levels, data_dir=data_dir)
    pruning = run.recipe.pruning
    zeros = count_sparsity(run.model, pruning.layers if pruning is not None else "*")
    return RunSummary(
        run=given_name(run.folder),
        pruned=pruning is not None,
        images=found.images,
        levels=found.keys.levels,
        accuracy=found.accuracy,
        quantized_accuracy=found.quantized_accuracy,
        even_accuracy=found.even_accuracy,
        entropy=found.dictionary.entropy,
        keys=found.dictionary.num_keys,
        sparsity=zeros["sparsity"],
        sparsity_total=zeros["sparsity_total"],
        parameters_left=int(zeros["parameters_left"]),
        classes=found.dictionary.rows(found.classes),
    )
