"""From a pruned run to one without its zeros."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

from torchcaps.core import Plain
from torchcaps.models import Network
from torchcaps.prune import shrink
from torchcaps.routing import iterations_of
from torchcaps.storage import write_json

from ..run import TRAINED, Run, load_run, read_result, require_no_run, write_untrained


def shrink_run(source: Run, out: Path) -> Run:
    """Leave what pruning left of a run's network as a run in `out`, which answers as `source` does.

    Its recipe trains on from these weights. What is known of the training so far is kept beside them.
    """
    require_no_run(out)
    network = shrink(source.model)
    model = {**source.recipe.model, **_changes(source.model, network)}
    recipe = replace(source.recipe, model=model, start_from=str(out))
    header = {}
    if recipe.annealing is not None:
        header["iterations"] = iterations_of(network, recipe.annealing.layers)
    write_untrained(out, recipe, network, epoch=source.epoch, card=source.card, header=header)
    if (source.folder / "result.json").is_file():
        write_json(out / TRAINED, read_result(source.folder))
    return load_run(out, source.device)


def _changes(before: Network, after: Network) -> Plain:
    old, new = before.config, after.config
    names = [field.name for field in fields(new)]
    return {name: getattr(new, name) for name in names if getattr(new, name) != getattr(old, name)}
