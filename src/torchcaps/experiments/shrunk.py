"""What shrinking gives: the network as trained and the one pruned by types, in size, time and accuracy."""

from __future__ import annotations

from dataclasses import replace

from torchcaps.pages import measure_footprints
from torchcaps.prune import shrink

from .plan import (
    Case,
    Finding,
    Job,
    RowsOf,
    Setting,
    decide_together,
    difference,
    excess,
    mean_of,
    on_mnist5k,
    our_claim,
    register,
)
from .records import by_setting
from .rem.beyond.groups import TINY

LABEL = "beyond:shrunk"
_WHOLE, _TYPES = "as trained", "pruned by types and shrunk"
_KEPT = 0.5  # points of accuracy
_TIMES = ("cpu_ms_1", "cpu_ms_128")
_SHARES = ("cpu_share_1", "cpu_share_128")


def train_and_shrink(job: Job) -> None:
    """Train, leave out what pruning cut off, and measure what is left."""
    trained, outcome = job.train_network()
    whole, left = measure_footprints(trained.model.to("cpu"), shrink(trained.model).to("cpu"))
    sizes = {"parameters_shrunk": left.parameters, "forward_mflops": left.flops / 1e6}
    times = {f"cpu_ms_{batch}": ms for batch, ms in left.ms.items()}
    shares = {f"cpu_share_{batch}": ms / whole.ms[batch] for batch, ms in left.ms.items()}
    on_cpu = replace(job, machine=replace(job.machine, device="cpu"))  # they were timed there
    on_cpu.leave_result(outcome.with_metrics({**sizes, **times, **shares}))


def smaller_and_faster(rows_of: RowsOf) -> Finding:
    """Fewer parameters, and less time than the same network took before, for one image and for 128."""
    rows = [row for row in rows_of(LABEL) if row.setting == _TYPES]
    found = {row.metric: row for row in rows if row.metric in ("parameters_shrunk", *_SHARES)}
    whole = by_setting(rows_of(LABEL), "parameters_shrunk").get(_WHOLE)
    if whole is None or len(found) < 1 + len(_SHARES):
        return Finding("open", "one of the two has not been trained")
    means = {metric: mean_of(row) for metric, row in found.items()}
    cases = {metric: Case(excess(means[metric].times(-1), -100)) for metric in _SHARES}
    cases["parameters"] = Case(difference(mean_of(whole), means["parameters_shrunk"]))
    because = (
        f"{means['parameters_shrunk'].value / whole.ours:.0%} of the parameters, "
        f"{means['cpu_share_1'].value:.0f}% of the time for one image, "
        f"{means['cpu_share_128'].value:.0f}% for 128"
    )
    return decide_together(cases, len(found), because)


def as_accurate(rows_of: RowsOf) -> Finding:
    """An accuracy within half a point of the network that was not pruned."""
    found = by_setting(rows_of(LABEL), "test_accuracy")
    if len(found) < 2:
        return Finding("open", "one of the two has not been trained")
    whole, types = (mean_of(found[name]) for name in (_WHOLE, _TYPES))
    case = Case(difference(types, whole), -_KEPT)
    because = f"{whole.value - types.value:.2f} points of accuracy lost"
    return decide_together({"accuracy": case}, 1, because)


register(
    on_mnist5k(
        label=LABEL,
        title="What pruning by types of capsules and shrinking gives: size, operations, time and accuracy",
        at_once=1,  # networks are timed
        metrics=("test_accuracy", "parameters_shrunk", "forward_mflops", *_TIMES, *_SHARES),
        budgets={"smoke": TINY},
        perform=train_and_shrink,
        settings=(
            Setting(name=_WHOLE, recipe="mnist5k/dr_capsnet_small_types", changes={"pruning": None}),
            Setting(name=_TYPES, recipe="mnist5k/dr_capsnet_small_types"),
        ),
        claims=(
            our_claim("Pruned by types, a network becomes smaller and faster.", smaller_and_faster),
            our_claim("Its accuracy stays within half a point.", as_accurate),
        ),
        deviations=(
            "Not in the thesis. A small DR-CapsNet with eight types of capsules, 3,800 digits, 12 epochs.",
            "Times are those of a forward pass of 1 and of 128 images on the CPU of the run. A share of the "
            "time is that of the same network before shrinking, measured by turns.",
        ),
    )
)
