"""What shrinking gives: the network as trained and the one pruned by types, in size, time and accuracy."""

from __future__ import annotations

from pathlib import Path

from torchcaps.pages import measure_footprint
from torchcaps.prune import shrink
from torchcaps.train import Machine, Watcher, device_of, load_run, train

from .plan import (
    Claim,
    Experiment,
    Finding,
    Mean,
    Outcome,
    PlannedRun,
    RowsOf,
    Setting,
    as_ours,
    decide,
    decide_together,
    difference,
    leave_result,
    register,
)
from .records import by_setting
from .rem.beyond.entropy import BEYOND

LABEL = "beyond:shrunk"
_WHOLE, _TYPES = "as trained", "pruned by types and shrunk"
_KEPT = 0.5  # points of accuracy
_TIMES = ("cpu_ms_1", "cpu_ms_128")


def train_and_shrink(run: PlannedRun, out: Path, machine: Machine, watcher: Watcher) -> None:
    """Train, leave out what pruning cut off, and measure what is left."""
    training = run.folder(out) / "training"
    outcome = Outcome.of_training(train(run.recipe, training, machine, resume=True, watcher=watcher))
    trained = load_run(training, device_of(machine))
    left = measure_footprint(shrink(trained.model).to("cpu"))
    sizes = {"parameters_shrunk": left.parameters, "forward_mflops": left.flops / 1e6}
    times = {f"cpu_ms_{batch}": ms for batch, ms in left.ms.items()}
    leave_result(run, out, trained.device, outcome.with_metrics({**sizes, **times}))


def smaller_and_faster(rows_of: RowsOf) -> Finding:
    """Fewer parameters and less time at both batch sizes, at an accuracy within half a point."""
    rows = rows_of(LABEL)
    found = {metric: by_setting(rows, metric) for metric in ("test_accuracy", "parameters_shrunk", *_TIMES)}
    if any(len(pair) < 2 for pair in found.values()):
        return Finding("open", "one of the two has not been trained")
    shares = {metric: found[metric][_TYPES].ours / found[metric][_WHOLE].ours for metric in found}
    loss = found["test_accuracy"][_WHOLE].ours - found["test_accuracy"][_TYPES].ours
    because = (
        f"{shares['parameters_shrunk']:.0%} of the parameters, {shares['cpu_ms_1']:.0%} of the time for one "
        f"image and {shares['cpu_ms_128']:.0%} for 128, {loss:.2f} points of accuracy lost"
    )
    means = {
        metric: [Mean.of_row(pair[name], any_budget=True) for name in (_WHOLE, _TYPES)]
        for metric, pair in found.items()
    }
    verdicts = {metric: decide(difference(whole, types)) for metric, (whole, types) in means.items()}
    whole, types = means["test_accuracy"]
    verdicts["test_accuracy"] = decide(difference(types, whole), at_least=-_KEPT)
    return as_ours(decide_together(verdicts, len(found), because))


register(
    Experiment(
        label=LABEL,
        chapter=BEYOND,
        title="What pruning by types of capsules and shrinking gives: size, operations, time and accuracy",
        data=(),  # mnist5k comes with the package
        gpu_minutes=5,
        seeds=3,
        at_once=1,  # networks are timed
        metrics=("test_accuracy", "parameters_shrunk", "forward_mflops", *_TIMES),
        budgets={
            "smoke": {
                **{"data.limit": 120, "data.validation": 0.2, "batch_size": 16, "epochs": 1},
                "model": {
                    **{"name": "dr_capsnet_tiny_test", "image_size": 28},
                    **{"num_classes": 10, "decoder": "none"},
                },
            }
        },
        perform=train_and_shrink,
        settings=(
            Setting(name=_WHOLE, recipe="mnist5k/dr_capsnet_small_types", changes={"pruning": None}),
            Setting(name=_TYPES, recipe="mnist5k/dr_capsnet_small_types"),
        ),
        claims=(
            Claim(
                "Pruned by types, a network becomes smaller and faster, at an accuracy within half a point.",
                smaller_and_faster,
            ),
        ),
        deviations=(
            "Not in the thesis. A small DR-CapsNet with eight types of capsules, 3,800 digits, 12 epochs.",
            "Times are those of a forward pass of 1 and of 128 images on the CPU of the run.",
        ),
    )
)
