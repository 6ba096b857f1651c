"""From a pruned run to one without its zeros."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from torch import nn

from torchcaps.core import Plain
from torchcaps.models import config_as_json
from torchcaps.prune import shrink
from torchcaps.storage import save_weights, write_text

from ..run import Run, load_run, require_no_run, write_recipe
from ..techniques import iterative_routings


def shrink_run(source: Run, out: Path) -> Run:
    """Leave what pruning left of a run's network as a run in `out`, which answers as `source` does.

    Its recipe trains on from these weights.
    """
    require_no_run(out)
    network = shrink(source.model)
    model = {**source.recipe.model, **_changes(source.model, network)}
    recipe = replace(source.recipe, model=model, start_from=str(out))
    config: Any = network.config
    info = {"model": model, "config": config_as_json(config), "epoch": source.epoch}
    if recipe.annealing is not None:
        driven = iterative_routings(network, recipe.annealing.layers)
        info["iterations"] = {name: routing.iterations for name, routing in driven}
    save_weights(out / "weights.safetensors", network.state_dict(), info)
    write_recipe(out, recipe, source.card)
    write_text(out / "metrics.jsonl", "")
    return load_run(out, next(source.model.parameters()).device)


def _changes(before: nn.Module, after: nn.Module) -> Plain:
    old, new = before.config, after.config
    names = [field.name for field in fields(new)]  # type: ignore[arg-type]
    return {name: getattr(new, name) for name in names if getattr(new, name) != getattr(old, name)}
