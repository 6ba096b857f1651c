"""What may make a SegCaps better: other routings of the deepest level, deep supervision, a border loss.

What raises the Dice of regions beyond the spread of the seeds is what `segcaps_plus` is to hold:
`plus_changes` reads it from the rows.
"""

from __future__ import annotations

from functools import partial

from ..plan import Changes, Finding, RowsOf, Setting, larger, our_claim, register
from ..records import Budget, by_setting
from .claims import METRIC
from .runs import TINY, learn_phantom, on_nodules, phantom_data

LABEL = "beyond:lung-plus"
BASELINE = "SegCaps R3"
_ADDED: dict[str, Changes] = {
    BASELINE: {},
    "EM routing in the deepest level": {"model.bottom_routing": "em"},
    "self-attention routing in the deepest level": {"model.bottom_routing": "self_attention"},
    "deep supervision": {"model.deep_supervision": True},
    "pixels at borders count five times": {"loss.border_weight": 4.0},
}
_PATIENTS: dict[Budget, int] = {"smoke": 3, "quick": 240, "full": 240}
_QUICK_EPOCHS = 12  # as those of the thesis's table
_TINY: Changes = {**TINY, "model": {"name": "segcaps_tiny_test", "image_size": 32, "reconstruction": False}}


def _data(budget: Budget) -> Changes:
    return {"data.name": phantom_data(_PATIENTS[budget])}


def _title(name: str) -> str:
    return name if name == BASELINE else f"{BASELINE}, {name}"


VARIANTS = tuple(name for name in _ADDED if name != BASELINE)
_ALONE, _OF_SEVERAL = (
    {name: larger(LABEL, METRIC, [(_title(name), BASELINE)], cases=cases) for name in VARIANTS}
    for cases in (1, len(VARIANTS))
)


def helpful_variants(rows_of: RowsOf) -> list[str]:
    """The variants that raise the Dice of regions beyond the spread of the seeds, the best first.

    One of several may do so by chance: each has to by more than if it had been tried alone.
    """
    dice = {row.setting: float(row.ours) for row in by_setting(rows_of(LABEL), METRIC).values()}
    helpful = [name for name in VARIANTS if _OF_SEVERAL[name](rows_of).verdict == "confirmed"]
    return sorted(helpful, key=lambda name: -dice[_title(name)])


def plus_changes(rows_of: RowsOf) -> Changes:
    """What `segcaps_plus` changes of `lung/segcaps_r3`: all that helps, of two routings the better."""
    changes: dict[str, object] = {}
    for name in reversed(helpful_variants(rows_of)):  # the better one comes last and stays
        changes |= _ADDED[name]
    return changes


def _something_helps(rows_of: RowsOf) -> Finding:
    """Confirmed with one variant that helps, not confirmed once all of them are decided against."""
    findings = {name: check(rows_of) for name, check in _OF_SEVERAL.items()}
    if helpful := helpful_variants(rows_of):
        changes = ", ".join(f"{key}={value}" for key, value in plus_changes(rows_of).items())
        return Finding("confirmed", f"it helps: {', '.join(helpful)}; segcaps_plus sets {changes}")
    if all(finding.verdict == "not confirmed" for finding in findings.values()):
        return Finding("not confirmed", "none of them helps")
    undecided = [name for name, finding in findings.items() if finding.verdict == "open"]
    return Finding("open", f"runs have not decided on: {', '.join(undecided)}")


def _setting(name: str) -> Setting:
    added = _ADDED[name]
    return Setting(
        name=_title(name),
        network=BASELINE,
        variant="as published" if name == BASELINE else name,
        recipe="lung/segcaps_r3",
        changes={**_data("full"), **added},
        budgets={
            "smoke": {**_TINY, **_data("smoke"), **added},
            "quick": {**_data("quick"), "epochs": _QUICK_EPOCHS, **added},
        },
    )


register(
    on_nodules(
        label=LABEL,
        title="SegCaps with other routings of its deepest level, deep supervision and a border loss",
        gpu_minutes=90,
        metrics=("test_dice", METRIC, "region_dice_low", "region_dice_high", "missed_share"),
        settings=tuple(map(_setting, _ADDED)),
        perform=partial(learn_phantom, _PATIENTS),
        claims=(
            *(
                our_claim(f"{name[0].upper()}{name[1:]}: a SegCaps R3 gets a higher Dice of regions.", check)
                for name, check in _ALONE.items()
            ),
            our_claim(
                "One of these makes a SegCaps better, which `segcaps_plus` then holds.", _something_helps
            ),
        ),
        deviations=(
            "Not in the thesis. Regions of drawn patients, 40 epochs; every setting changes one thing.",
            "Quick: 12 epochs.",
        ),
    )
)
