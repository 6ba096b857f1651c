"""PartWhole: the search for a capsule network that is ahead of others of its size in clutter.

What is varied: the convolutions below the capsules, the routing, shared matrices, the depth, and whether few
parse trees are an objective. All networks, those without capsules too, get what keeps a network from learning
20,000 images by heart: turned images, weight decay, averaged weights.
"""

from __future__ import annotations

from ..plan import (
    MISSING,
    Case,
    Changes,
    Finding,
    Mean,
    RowsOf,
    Setting,
    Values,
    Verdict,
    decide_best,
    decide_together,
    difference,
    join_changes,
    our_claim,
    register,
    with_spread,
)
from ..records import Row, by_setting
from .claims import at_clutter
from .networks import CAPSULES, CONV, DR, GAMMA, ONE_ROUND, PLAIN, VIT, Compared, small_networks
from .parts import TRAIN, data_name, on_parts

LABEL = "robust:partwhole-search"
STRENGTHS = (0.3, 0.6)
DEEP_STEM = "deep stem"
TWIN = f"{DEEP_STEM}, dense layers"
WITHOUT_CAPSULES = (CONV, VIT, TWIN)
_TRAINING: Changes = {
    "optim.name": "adamw",
    "optim.schedule": "cosine",
    "optim.learning_rate": 1e-3,
    "optim.warm_up": 2,
    "optim.weight_decay": 0.05,
    "optim.average": 0.999,
}
_WIDE = (64, 128, 128, 256)  # channels below capsules, for equal sizes


def candidates() -> dict[str, Compared]:
    """Networks of equal size within 5 % for 32 px and eight classes."""
    found = small_networks(32, 8)
    kept = {name: found[name] for name in (DR, ONE_ROUND, GAMMA, CONV, VIT)}
    image: Values = {"image_size": 32, "in_channels": 1, "num_classes": 8}
    wide: Values = {"name": "efficient_capsnet_mnist", "channels": _WIDE, **image}
    others = (
        Compared(f"{DEEP_STEM}, self-attention", wide),
        Compared(f"{DEEP_STEM}, dynamic routing", {**wide, "routing": "dynamic"}),
        Compared(
            f"{DEEP_STEM}, dynamic routing, entropy objective",
            {**wide, "routing": "dynamic"},
            {"loss.coupling_entropy": 0.03},
        ),
        Compared(
            f"{DEEP_STEM}, shared matrices",
            {
                **wide,
                "channels": (*_WIDE[:3], 512),
                "routing": "shared_matrix",
            },  # matrices shared, more capsules
        ),
        Compared(
            f"{DEEP_STEM}, two capsule layers",
            {"name": "effconv_capsnet_64", "channels": (48, 64, 80, 256), **image},
        ),
        Compared(
            f"{DEEP_STEM}, five capsule layers",
            {"name": "parse_capsnet", "channels": (96, 160, 256), **image},
        ),
        Compared(TWIN, {"name": "conv_twin_mnist", "channels": _WIDE, "hidden": 128, **image}, PLAIN),
    )
    return kept | {each.name: each for each in others}


def _setting(network: Compared, strength: float) -> Setting:
    name = data_name(clutter=strength, train=TRAIN)
    data: Values = {"name": name, "augment": {"rotation": 180}}
    return Setting(
        name=at_clutter(network.name, strength),
        network=network.name,
        variant=f"clutter {strength:g}",
        recipe=CAPSULES,
        changes=join_changes(network.changes, {"model": network.model, "data": data, **_TRAINING}),
        budgets={
            "quick": {"epochs": 40, "patience": 0},
            "full": {"epochs": 150, "patience": 0},
            "smoke": {"data.name": name.replace(f"train={TRAIN}", "train=200,test=100")},
        },
    )


def capsules_win(rows_of: RowsOf) -> Finding:
    """At every strength some capsule network is ahead of each of the others, beyond spread."""
    rows = list(by_setting(rows_of(LABEL), "test_accuracy").values())
    kinds = {strength: _ranked(rows, f"clutter {strength:g}") for strength in STRENGTHS}
    found = {strength: both for strength, both in kinds.items() if all(both)}
    if not found:
        return MISSING
    verdicts = {f"clutter {strength:g}": _decide_win(*both) for strength, both in found.items()}
    words = "; ".join(
        f"{with_spread(capsules[0])} against {with_spread(others[0])}" for capsules, others in found.values()
    )
    return decide_together(verdicts, len(STRENGTHS), words)


def _decide_win(capsules: list[Row], others: list[Row]) -> Verdict:
    """Whether one capsule network is ahead of all others; not decided against it before all have run.

    Kinds of networks learn at different rates: short trainings do not tell.
    """
    cases = len(candidates()) - len(WITHOUT_CAPSULES)
    findings = [
        decide_together(
            {
                other.network: Case(difference(Mean.of_row(row), Mean.of_row(other), cases=cases))
                for other in others
            },
            len(WITHOUT_CAPSULES),
            row.network,
        )
        for row in capsules
    ]
    return decide_best(findings, cases - len(capsules)).verdict


def _ranked(rows: list[Row], variant: str) -> tuple[list[Row], list[Row]]:
    """The capsule networks and the others at a strength, the best first."""
    best_first = sorted((row for row in rows if row.variant == variant), key=lambda row: -row.ours)
    capsules = [row for row in best_first if row.network not in WITHOUT_CAPSULES]
    return capsules, [row for row in best_first if row.network in WITHOUT_CAPSULES]


register(
    on_parts(
        label=LABEL,
        title="PartWhole: the search for a capsule network that wins in clutter",
        gpu_minutes=90,
        settings=tuple(
            _setting(network, strength) for strength in STRENGTHS for network in candidates().values()
        ),
        claims=(
            our_claim(
                "Trained alike, with turned images and weight decay, a capsule network is ahead in clutter "
                "of a transformer and two convolutional networks of its size, one of them with its stem.",
                capsules_win,
            ),
        ),
        deviations=(
            "Networks have equal sizes within 5 %. All are trained alike: AdamW with weight decay 0.05, a "
            "warm-up of two epochs, a cosine, averaged weights, images turned by any angle; the margin loss "
            "for capsules, cross-entropy for the others.",
            "A deep stem has four convolutions with batch normalisation, as Efficient-CapsNet has, three of "
            "them at full resolution: it takes many more operations than the convolutional network, which "
            "halves the map each time. With dense layers on it, a network tells what the stem gives alone.",
            "The best of nine capsule networks is compared with the best of three others. Of nine some are "
            "ahead by chance: the interval of each difference is as wide as nine of them need.",
        ),
    )
)
