"""From a trained run to one with fewer channels: candidates are scored and the best is kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

from torchcaps.core import MissingDataError, Plain, UserError
from torchcaps.inspection import count_parameters
from torchcaps.models import Network
from torchcaps.storage import (
    checksum_of,
    load_weights,
    read_json_lines,
    read_mapping,
    write_json,
    write_json_lines,
)

from ..machine import Machine, launch, settled
from ..recipe import Recipe, recipe_as_json
from ..run import PruneResult, Run, load_run, provenance, read_result, require_no_run, write_untrained
from .candidates import Candidates, StructuredPruning, plan_candidates

_AT_ONCE = 4  # candidates that are shown the same batches; what a killed search scores again at most

_PRINTED = ("pruning.candidates", "search.scores", "macs.after", "metrics.test_loss", "parameters")


def prune_run(
    source: Path,
    out: Path,
    settings: StructuredPruning,
    machine: Machine | None = None,
    *,
    on_candidate: Callable[[int, int, str], None] = lambda done, planned, best: None,
) -> PruneResult:
    """Prune the network of run `source`, leave it as a run in `out`, return the content of its result.json.

    Scored candidates are kept in `out/candidates.jsonl`: a search that was interrupted goes on there and ends
    as if it had not been. The recipe in `out` fine-tunes the pruned network.
    """
    machine, started = settled(machine or Machine()), time.perf_counter()
    identity = _identity(source, settings)
    if _is_finished(out, identity, settings):
        return cast(PruneResult, read_result(out, *_PRINTED))
    fabric = launch(machine)
    run = load_run(source, fabric.device)
    cost, drawn = plan_candidates(run.model, settings)  # an impossible target ends here, before data is read
    candidates = Candidates(fabric, run, settings, machine.data_dir)
    write_json(out / "pruning.json", identity)
    scores = _score_missing(out, drawn.widths, candidates, on_candidate)
    best = run.task.leading_metric.best(scores)
    widths = drawn.widths[scores.index(best)]
    (pruned,) = candidates.adapted([widths])
    recipe = _write_pruned(run, out, pruned, widths)
    test = candidates.evaluate(pruned, run.source(data_dir=machine.data_dir).test(fabric.device))
    leading = run.task.leading_metric.name
    result: PruneResult = {
        "recipe": recipe_as_json(recipe),
        "metrics": {
            f"val_{leading}": best,
            **{f"test_{name}": value for name, value in test.metrics.items()},
            "test_loss": test.loss,
        },
        "pruning": asdict(settings),
        "search": {**drawn._asdict(), "widths": list(widths), "scores": scores},
        "macs": {"before": cost.macs_of_full, "after": cost.macs_of(widths)},
        "parameters": count_parameters(pruned),
        "seed": settings.seed,
        "seconds": round(time.perf_counter() - started, 3),
        "precision": machine.precision,
        **provenance(fabric.device),
    }
    write_json(out / "result.json", result)
    return result


def _write_pruned(run: Run, out: Path, pruned: Network, widths: Sequence[int]) -> Recipe:
    """Leave the pruned network of `run` as a run in `out`, and return the recipe that trains it further."""
    model = {**run.recipe.model, "trunk_widths": list(widths)}
    recipe = replace(run.recipe, model=model, start_from=str(out))
    _, header = load_weights(run.folder / "weights.safetensors")
    write_untrained(out, recipe, pruned, card=run.card, header=header)
    return recipe


def _identity(source: Path, settings: StructuredPruning) -> Plain:
    """What a search must have in common with the one it continues; more candidates may be asked for."""
    weights = source / "weights.safetensors"
    if not weights.is_file():
        raise MissingDataError(
            f"{source} holds no trained run (no weights.safetensors); make one with torchcaps train"
        )
    values = {key: value for key, value in asdict(settings).items() if key != "candidates"}
    return {"source": str(source), "weights": checksum_of(weights), **values}


def _is_finished(out: Path, identity: Plain, settings: StructuredPruning) -> bool:
    before = out / "pruning.json"
    if not before.is_file():
        require_no_run(out)
        return False
    stored = read_mapping(before)
    changed = [key for key in identity if identity[key] != stored.get(key)]
    if changed:
        raise UserError(f"{out} holds another search (changed: {', '.join(changed)}); choose another --out")
    finished = out / "result.json"
    if not finished.is_file():
        return False
    return bool(read_result(out, *_PRINTED)["pruning"]["candidates"] == settings.candidates)


def _score_missing(
    out: Path,
    all_widths: list[tuple[int, ...]],
    candidates: Candidates,
    on_candidate: Callable[[int, int, str], None],
) -> list[float]:
    path = out / "candidates.jsonl"
    metric = candidates.task.leading_metric
    rows = _scored(path, metric.name)
    scores = [float(row[metric.name]) for row in rows]
    for first in range(len(scores), len(all_widths), _AT_ONCE):
        chosen = all_widths[first : first + _AT_ONCE]
        found = candidates.score(chosen)
        pairs = zip(chosen, found, strict=True)
        rows += [{"widths": widths, metric.name: score} for widths, score in pairs]
        write_json_lines(path, rows)
        scores += found
        best = metric.format(metric.best(scores))
        on_candidate(len(scores), len(all_widths), f"{metric.title} {best}")
    return scores[: len(all_widths)]


def _scored(path: Path, metric: str) -> list[dict[str, Any]]:
    """The candidates that a search has scored; a damaged file is an error that names it."""
    rows = read_json_lines(path) if path.is_file() else []
    if not all(isinstance(row.get(metric), float | int) for row in rows):
        raise UserError(f"{path} is damaged (no {metric} in a line); delete it to score the candidates again")
    return rows
