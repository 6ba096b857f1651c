"""From the results of single runs to the rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import mean, stdev

from torchcaps.core import Number, UserError, metric_of
from torchcaps.storage import write_bytes, write_json

from ..plan import Experiment, PlannedRun, Setting, made_with, planned_with
from ..records import (
    BUDGETS,
    Budget,
    MeanCurve,
    Protocol,
    Row,
    RowRun,
    RunResult,
    load_rows,
    protocol_of,
    read_result,
)
from .overview import write_overview
from .page import write_page


def summarise(
    results: Sequence[RunResult],
    *,
    setting: str,
    metric: str,
    protocols: Sequence[Protocol],
    thesis: Number | None = None,
) -> Row:
    """Mean and deviation of one metric over runs, in the unit of the metric."""
    if not results:
        raise UserError(f"no runs for {setting}")
    seeds = [result.facts.seed for result in results]
    if len(set(seeds)) != len(seeds):
        raise UserError(f"{setting}: a seed occurs twice in {seeds}")
    ours, spread = _mean_and_spread([result.metrics[metric] for result in results], metric)
    return Row(
        setting=setting,
        metric=metric,
        thesis=thesis,
        ours=ours,
        spread=spread,
        protocols=tuple(protocols),
        runs=tuple(
            RowRun(facts=result.facts, value=result.metrics[metric], details=result.details)
            for result in results
        ),
    )


def _mean_and_spread(values: Sequence[Number], metric: str) -> tuple[float, float | None]:
    scaled = [metric_of(metric).scale * value for value in values]
    return round(mean(scaled), 4), round(stdev(scaled), 4) if len(scaled) > 1 else None


def mean_curve(curves: Sequence[Mapping[int, float]], metric: str) -> MeanCurve:
    """Mean and deviation over runs at every place that a run has reached."""
    places = sorted({place for curve in curves for place in curve})
    values = [[curve[place] for curve in curves if place in curve] for place in places]
    pairs = [_mean_and_spread(some, metric) for some in values]
    return MeanCurve(
        at=tuple(places),
        mean=tuple(middle for middle, _ in pairs),
        spread=tuple(spread for _, spread in pairs),
        seeds=tuple(len(some) for some in values),
    )


def write_results(
    folder: Path,
    label: str,
    rows: Sequence[Row],
    command: str,
    *,
    order: Sequence[tuple[str, str]] = (),
    restate: Callable[[Row], Row] = lambda row: row,
) -> None:
    """Write `results/<label>.json`; rows not given again are kept, and so are those of a larger budget.

    Rows whose setting and metric are in `order` come first and in that order; `restate` is applied to rows
    that are kept.
    """
    path = folder / f"{label}.json"
    before = [restate(row) for row in load_rows(folder, label)] if path.is_file() else []
    merged = {(row.setting, row.metric): row for row in before}
    for row in rows:
        old = merged.get((row.setting, row.metric))
        if old is None or _size(row) >= _size(old):
            merged[row.setting, row.metric] = row
    ranks = {place: rank for rank, place in enumerate(order)}
    ordered = sorted(merged.values(), key=lambda row: ranks.get((row.setting, row.metric), len(ranks)))
    write_json(path, {"label": label, "command": command, "rows": [row.as_json() for row in ordered]})


def _size(row: Row) -> int:
    return 0 if row.budget is None else BUDGETS.index(row.budget)


def gather_runs(experiment: Experiment, out: Path, results: Path, *, budget: Budget, command: str) -> int:
    """Write `results/<label>.json`, picture and page from the finished runs; return the number of rows."""
    rows = rows_of_runs(experiment, out, budget=budget)
    if rows:
        order = [(setting.name, metric) for setting in experiment.settings for metric in experiment.metrics]
        restate = partial(_restate, {setting.name: setting for setting in experiment.settings})
        write_results(results, experiment.slug, rows, command, order=order, restate=restate)
        if experiment.draw is not None:
            picture = experiment.draw(load_rows(results, experiment.slug))
            if picture is not None:
                write_bytes(results / f"{experiment.slug}.png", picture)
        write_page(experiment, results)
        write_overview(results)
    return len(rows)


def _restate(settings: Mapping[str, Setting], row: Row) -> Row:
    """A row of earlier runs with the figures and the note that the plan has for its setting now."""
    setting = settings.get(row.setting)
    if setting is None:
        return row
    protocols = tuple(replace(protocol, note=setting.note) for protocol in row.protocols)
    return replace(row, thesis=setting.thesis.get(row.metric), protocols=protocols)


def rows_of_runs(experiment: Experiment, out: Path, *, budget: Budget) -> list[Row]:
    """The rows that the finished runs of an experiment give."""
    rows: list[Row] = []
    for setting in experiment.settings:
        any_run = experiment.run_of(setting, budget, seed=0)
        rows += _rows_of_setting(any_run, _results_of(any_run, out))
    return rows


def _results_of(any_run: PlannedRun, out: Path) -> list[RunResult]:
    """The results of the finished runs like `any_run`, whatever their seeds, that were made with one recipe.

    That is the recipe of the plan; where no run has it, the older one that most of them have.
    """
    folder = any_run.folder(out)
    start = folder.name.removesuffix("0")  # the name of another setting may begin with it too
    paths = sorted(folder.parent.glob(f"{start}[0-9]*/result.json"))
    own = [path for path in paths if path.parent.name.removeprefix(start).isdecimal()]
    alike: dict[str, list[RunResult]] = {}
    for result in map(read_result, own):
        alike.setdefault(made_with(result.recipe, result.data_protocol), []).append(result)
    return alike.get(planned_with(any_run)) or max(alike.values(), key=len, default=[])


def _rows_of_setting(any_run: PlannedRun, results: Sequence[RunResult]) -> Iterator[Row]:
    """A row for each metric; the first one carries the details of the runs, which may hold pictures."""
    experiment, setting = any_run.experiment, any_run.setting
    protocols = [_protocol(result, any_run.budget, setting.note) for result in results]
    measured = [name for name in experiment.metrics if any(name in result.metrics for result in results)]
    for metric in measured:
        having = [result for result in results if metric in result.metrics]
        row = summarise(
            having,
            setting=setting.name,
            metric=metric,
            protocols=list(dict.fromkeys(protocols)),
            thesis=setting.thesis.get(metric),
        )
        row = replace(
            row, network=setting.network, variant=setting.variant, curve=_curve(experiment, having, metric)
        )
        yield row if metric == measured[0] else row.without_details()


def _protocol(result: RunResult, budget: Budget, note: str) -> Protocol:
    """How a run was made; one without parameters trained nothing."""
    if not result.facts.parameters:
        return Protocol(budget=budget, note=note)
    return protocol_of(result.recipe, budget, epochs=result.facts.epochs, note=note)


def _curve(experiment: Experiment, results: Sequence[RunResult], metric: str) -> MeanCurve | None:
    if experiment.curve is None:
        return None
    curves = [curve for result in results if (curve := experiment.curve(result, metric))]
    return mean_curve(curves, metric) if curves else None
