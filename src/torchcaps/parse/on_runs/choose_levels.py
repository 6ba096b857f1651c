"""The number of levels for a run, chosen on its validation images."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path

import torch

from torchcaps.train import Run, load_labelled

from ..choose_levels import CANDIDATES, ChosenLevels, choose_levels
from ..quantize import keeps_even_share, quantized
from .analyse import count_hits


@torch.no_grad()
def choose_levels_of_run(
    run: Run,
    *,
    candidates: Iterable[int] = CANDIDATES,
    tolerance: float = 0.001,
    data_dir: Path | None = None,
) -> ChosenLevels:
    """`choose_levels` by the validation images of a run, the same number for all of its layers.

    Numbers that round an even share up to a larger coupling are left out.
    """
    data, pipeline = load_labelled(run, "validation", data_dir=data_dir)

    def evaluate(levels: int | None) -> float:
        with nullcontext() if levels is None else quantized(run.model, levels):
            return count_hits(run.model, data, pipeline) / len(data)

    output = run.model(pipeline.for_evaluation(data.images[:1]).inputs, return_routing=True)
    parents = {
        trace.routed.coupling.shape[-1] for trace in output.layers if trace.routed.coupling is not None
    }
    fair = [number for number in candidates if all(keeps_even_share(each, number) for each in parents)]
    return choose_levels(evaluate, fair, tolerance)
