"""What `torchcaps demo` found, as rows like those of the experiments and in words."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from torchcaps.pages import Demo, RunSummary
from torchcaps.storage import read_json

from .records import Details, Protocol, Row, Rows, RunResult, by_setting_and_metric
from .results import summarise, write_results

SLUG = "demo-mnist5k"
_PLAIN, _REM = "as trained", "with REM"
_MEASURED = ("accuracy", "quantized_accuracy", "even_accuracy", "entropy", "keys", "sparsity")


def record_demo(demo: Demo, folder: Path) -> Rows:
    """The rows of a demonstration, written to `demo-mnist5k.json` in a folder."""
    rows = [*_rows(_PLAIN, demo.plain, demo.seconds), *_rows(_REM, demo.rem, demo.seconds)]
    (folder / f"{SLUG}.json").unlink(missing_ok=True)  # an earlier one may have had other rows
    write_results(folder, SLUG, rows, "torchcaps demo")
    return rows


def _rows(name: str, summary: RunSummary, seconds: float) -> list[Row]:
    trained = RunResult.from_json(read_json(Path(summary.run) / "result.json"))
    found = asdict(summary)
    metrics = {f"test_{key}" if key == "accuracy" else key: found[key] for key in _MEASURED}
    result = RunResult(
        facts=trained.facts,
        metrics={**metrics, "demo_seconds": seconds},
        recipe=trained.recipe,
        details=Details(),
    )
    protocol = Protocol(epochs=trained.facts.epochs_allowed, note=f"{summary.images:,} test images")
    return [summarise([result], setting=name, metric=key, protocols=[protocol]) for key in result.metrics]


def describe_demo(rows: Rows) -> str:
    """The rows of a demonstration in a few lines."""
    found = by_setting_and_metric(rows)
    plain = {metric: row.ours for metric, row in found[_PLAIN].items()}
    trained = [each["test_accuracy"].runs[0].facts for each in found.values()]
    lines = [
        f"accuracy on held-out digits: {plain['test_accuracy']:.2f}%, without routing "
        f"{plain['even_accuracy']:.2f}%"
    ]
    for name, metrics in found.items():
        value = {metric: row.ours for metric, row in metrics.items()}
        lines.append(
            f"  {name:<10} {value['keys']:>4,.0f} parse trees, {value['entropy']:.2f} bits, "
            f"{value['sparsity']:.0f}% of the weights pruned, "
            f"accuracy {value['quantized_accuracy']:.2f}% quantized"
        )
    times = " and ".join(f"{facts.seconds:.0f}" for facts in trained)
    lines.append(f"{plain['demo_seconds']:.0f} s in all, of which training {times} s ({trained[0].device})")
    return "\n".join(lines)
