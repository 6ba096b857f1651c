"""PartWhole: capsules against a convolutional network and a transformer, over clutter and training images."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from torchcaps.core import Number
from torchcaps.suites import draw_test_images, measure_truth
from torchcaps.train import Pipeline
from torchcaps.viz import LineChart, Measured, draw_lines, to_png, with_deviation

from ..plan import Changes, Experiment, Job, Setting, Values, join_changes, register
from ..records import Rows, by_setting
from .claims import (
    CHAPTER,
    CLUTTER,
    CLUTTER_CLAIMS,
    COUNTS,
    IMAGES,
    IMAGES_CLAIMS,
    SCENES,
    SCENES_CLAIMS,
    STRENGTHS,
)
from .networks import (
    CAPSULES,
    CONV,
    DR,
    ENTROPY,
    GAMMA,
    ONE_ROUND,
    REM,
    SHARED,
    SMOKE,
    VIT,
    Compared,
    small_networks,
)

_MIDDLE = 0.3
TRAIN = 20_000
_QUICK: Changes = {"epochs": 25, "optim.decay": 0.88, "patience": 0}
_TRUTH = (
    *("accuracy_with_even", "saliency_on_object", "saliency_on_clutter", "even_on_object", "even_on_clutter"),
    *("contribution_on_object", "contribution_on_clutter", "part_purity", "part_purity_base"),
    *("tree_precision", "tree_recall", "even_tree_precision", "even_tree_recall"),
    *("random_tree_precision", "random_tree_recall", "equivariance_error"),
)
_LEARNING: Values = {"name": "dynamic", "gradient": "full"}
_DEVIATIONS = (
    "Every class has the same four parts: only their arrangement differs. Objects are turned by any angle.",
    "Networks have equal sizes within 5 %, except shared matrices, which have fewer. All but the transformer "
    "are trained alike: the margin loss for capsules, cross-entropy for the others.",
    "The transformer has patches of 8 px, a convolutional stem, AdamW with weight decay 0.05, a warm-up of "
    "two epochs and a cosine.",
    "Maps and poses are compared with the truth on 2,000 test images, trees on 200. A carved tree keeps the "
    "32 strongest edges of each layer; an even-split tree has the same activations and even couplings.",
    "The equivariance error is what a linear map leaves unexplained of the class pose after a turn by 15°.",
)


def _networks(size: int, classes: int) -> dict[str, Compared]:
    """All networks of the comparison: those of equal size, and ways to train DR-CapsNet."""
    found = small_networks(size, classes)
    base = found[DR]
    found[REM] = Compared(REM, base.model, {"pruning": {}})
    entropy = {**base.model, "routing": _LEARNING}
    found[ENTROPY] = Compared(ENTROPY, entropy, {"loss.coupling_entropy": 0.03})
    return found


def study_parts(job: Job) -> None:
    """Train on PartWhole, then compare maps, trees and poses with the truth."""
    network, outcome = job.train_network()
    pipeline = Pipeline(network.recipe.data, network.info(job.data_dir))
    metrics = measure_truth(network.model, draw_test_images(network), pipeline)
    job.leave_result(outcome.with_metrics(metrics))


def data_name(**settings: object) -> str:
    """The name of the dataset with these settings."""
    return "partwhole:" + ",".join(f"{key}={value}" for key, value in settings.items())


def _setting(network: Compared, variant: str, data: Values) -> Setting:
    pull: Changes = {"pruning.strength": 5e-4, "pruning.decay": 0.88} if network.name == REM else {}
    smoke = str(data["name"]).replace(f"train={TRAIN}", "train=200,test=100")
    return Setting(
        name=f"{network.name}, {variant}",
        network=network.name,
        variant=variant,
        recipe=CAPSULES,
        changes=join_changes(
            {"model": network.model, "data": data, "optim.learning_rate": 1e-3}, network.changes
        ),
        budgets={"quick": {**_QUICK, **pull}, "smoke": {"data.name": smoke}},
    )


def _over_clutter() -> tuple[Setting, ...]:
    networks = _networks(32, 8)
    return tuple(
        _setting(network, f"clutter {strength:g}", {"name": data_name(clutter=strength, train=TRAIN)})
        for strength in STRENGTHS
        for network in networks.values()
    )


def _over_images() -> tuple[Setting, ...]:
    networks = _networks(32, 8)
    names = (DR, ONE_ROUND, GAMMA, SHARED, CONV, VIT)
    return tuple(
        _setting(
            networks[name],
            f"{count:,} images",
            {"name": data_name(clutter=_MIDDLE, train=TRAIN), "limit": count},
        )
        for count in COUNTS
        for name in names
    )


def _scenes() -> tuple[Setting, ...]:
    name = data_name(branches="3x3", classes=6, clutter=_MIDDLE, train=TRAIN)
    networks = _networks(48, 6)
    return tuple(
        _setting(networks[each], "scenes", {"name": name}) for each in (DR, GAMMA, SHARED, CONV, VIT)
    )


def _draw(rows: Rows, places: Mapping[str, Number], across: str) -> bytes:
    """Test accuracy of each network against what changes."""
    curves: dict[str, list[tuple[Number, Measured]]] = {}
    for row in by_setting(rows, "test_accuracy").values():
        if row.network in (ENTROPY, REM):  # in the table alone: a chart has six colours
            continue
        point = (places[row.variant], with_deviation(row.ours, row.spread, most=100))
        curves.setdefault(row.network, []).append(point)
    chart = LineChart(
        "Test accuracy in %",
        {name: sorted(curve, key=lambda point: point[0]) for name, curve in curves.items()},
        across=across,
        log_ticks=tuple(places.values()) if across == "training images" else (),
    )
    return to_png(draw_lines([chart]))


on_parts = partial(
    Experiment,
    chapter=CHAPTER,
    data=(),
    seeds=3,
    metrics=("test_accuracy", "best_epoch", *_TRUTH),
    budgets={"smoke": SMOKE},
    perform=study_parts,
)
register(
    on_parts(
        label=CLUTTER,
        title="PartWhole over clutter: accuracy, maps, trees and poses",
        gpu_minutes=120,
        metrics=("test_accuracy", "best_epoch", *_TRUTH, "sparsity"),
        settings=_over_clutter(),
        draw=partial(
            _draw, places={f"clutter {strength:g}": strength for strength in STRENGTHS}, across="clutter"
        ),
        claims=CLUTTER_CLAIMS,
        deviations=_DEVIATIONS,
    )
)
register(
    on_parts(
        label=IMAGES,
        title="PartWhole over the number of training images",
        gpu_minutes=60,
        settings=_over_images(),
        draw=partial(
            _draw, places={f"{count:,} images": count for count in COUNTS}, across="training images"
        ),
        claims=IMAGES_CLAIMS,
        deviations=_DEVIATIONS,
    )
)
register(
    on_parts(
        label=SCENES,
        title="PartWhole with scenes of three objects of three parts, 48 px",
        gpu_minutes=60,
        settings=_scenes(),
        claims=SCENES_CLAIMS,
        deviations=(
            "All scenes have the same three objects, and all objects the same three parts: only how the "
            "objects are arranged tells classes apart. A network of one routed layer cannot show objects.",
            *_DEVIATIONS[1:],
        ),
    )
)
