"""Chapter 6, REM: familiar and novel viewpoints, on ETH-80 and, where its files are there, on smallNORB."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from torchcaps.suites import views_of

from ..our_data import REDUCED_ETH80
from ..plan import Experiment, Job, Setting, Values, register
from ..rem import CHAPTER
from ..rem.setting import Schedule, rem_pair
from .claims import AXES, view_claims
from .networks import CAPSULES, CONV, SMOKE, VIT, small_networks, without_capsules
from .other_images import Metrics, look_at

_ROUTING: Values = {"routing": {"name": "dynamic", "gradient": "last"}}
_METRICS = (
    *("familiar_accuracy", "familiar_quantized_accuracy", "familiar_entropy"),
    *("novel_accuracy", "novel_quantized_accuracy", "novel_entropy", "sparsity"),
)
# those of Efficient-CapsNet, and of DeepCaps between DR-CapsNet (7.5 M) and gamma-CapsNet (9.6 M), on ETH-80
_SIZES = {"0.29 M": 291_392, "8.1 M": 8_116_480}


def train_and_view(job: Job) -> None:
    """Train a network, and test it on the familiar and the novel views of its dataset."""
    network, outcome = job.train_network()
    metrics: Metrics = {}
    for views, name in views_of(job.run.recipe.data.name).items():
        found = look_at(network, name, job.data_dir)
        metrics |= {f"{views}_{key}": value for key, value in found.items()}
    job.leave_result(outcome.with_metrics(metrics))


def _capsules(image: Values) -> dict[str, tuple[Values, Schedule]]:
    """The model of each capsule network for these images, and its quick schedule."""
    return {
        "DR-CapsNet": ({"name": "dr_capsnet_mnist", **image, **_ROUTING}, Schedule(60, 0.95)),
        "gamma-CapsNet": ({"name": "gamma_capsnet_mnist", **image}, Schedule(40, 0.93)),
        "Efficient-CapsNet": ({"name": "efficient_capsnet_mnist", **image}, Schedule(60, 0.95)),
        "DeepCaps": ({"name": "deepcaps_28", **image}, Schedule(30, 0.9, 1e-3)),
    }


def _pairs(dataset: str, data: Values, channels: int, classes: int) -> list[Setting]:
    """Every network without REM and with it, trained on familiar elevations or azimuths."""
    found: list[Setting] = []
    tiny: Values = {"name": "dr_capsnet_mnist", "stem_channels": 8, "primary_types": 2}
    image: Values = {"in_channels": channels, "image_size": 32, "num_classes": classes}
    for axis, letter in AXES.items():
        own = {**data, "name": f"{dataset}:axis={axis}"}
        for network, (model, quick) in _capsules(image).items():
            small = {**tiny, **image, **_ROUTING} if network == "DR-CapsNet" else model
            found += rem_pair(
                f"{network} ({letter})",
                CAPSULES,
                {"model": model, "data": own},
                quick=quick,
                smoke={"model": small},
                note=f"trained on familiar {axis}s",
            )
    return found


def _without_capsules(dataset: str, data: Values, channels: int, classes: int) -> list[Setting]:
    """The networks without capsules at 0.87 M parameters, and at the sizes of those with capsules."""
    usual = small_networks(32, classes, channels)
    sized = {name: usual[name] for name in (CONV, VIT)}
    for words, parameters in _SIZES.items():
        found = without_capsules(32, classes, channels, parameters)
        sized |= {f"{name}, {words}": network for name, network in found.items()}
    return [
        Setting(
            name=f"{name} ({letter})",
            recipe=CAPSULES,
            changes={
                "model": network.model,
                "data": {**data, "name": f"{dataset}:axis={axis}"},
                **network.changes,
            },
            budgets={"quick": {"epochs": 60, "optim.decay": 0.95, "patience": 0}},
            note=f"trained on familiar {axis}s",
        )
        for axis, letter in AXES.items()
        for name, network in sized.items()
    ]


_JITTER: Values = {"brightness_gain": 0.25, "contrast": [0.8, 1.2]}
_ETH80: Values = {"validation": 0.1, "augment": {"shift": 2, **_JITTER}}
_SMALLNORB: Values = {
    "preprocess": {"resize": 48, "center_crop": 32, "normalize": "image"},
    "augment": {"crop": 32, "brightness": 0.247, "contrast": [0.2, 1.8]},
}
# Familiar views: accuracy, quantized, entropy; the same of novel views; sparsity. The accuracies without
# quantization are those of tab:novelviewpoints_full_original.
_THESIS: dict[str, tuple[float, ...]] = {
    "DR-CapsNet (φ)+Q": (90.62, 90.51, 6.25, 77.51, 77.40, 5.01, 0),
    "DR-CapsNet (φ)+REM": (90.51, 90.38, 3.35, 77.03, 76.98, 2.47, 50.13),
    "DR-CapsNet (ψ)+Q": (87.90, 87.44, 5.42, 72.37, 72.29, 5.02, 0),
    "DR-CapsNet (ψ)+REM": (86.81, 87.35, 3.38, 71.99, 71.89, 2.75, 58.61),
    "gamma-CapsNet (φ)+Q": (90.15, 89.62, 1.78, 75.89, 75.54, 2.72, 0),
    "gamma-CapsNet (φ)+REM": (89.92, 89.34, 1.46, 74.96, 74.40, 2.05, 47.50),
    "gamma-CapsNet (ψ)+Q": (86.11, 85.98, 1.87, 72.55, 71.33, 2.55, 0),
    "gamma-CapsNet (ψ)+REM": (85.35, 85.26, 1.52, 71.35, 71.12, 2.17, 49.61),
    "DeepCaps (φ)+Q": (95.32, 95.01, 7.32, 83.13, 83.18, 7.28, 0),
    "DeepCaps (φ)+REM": (94.48, 94.62, 6.75, 82.42, 82.49, 6.12, 34.45),
    "DeepCaps (ψ)+Q": (91.11, 90.16, 6.53, 79.53, 79.36, 5.14, 0),
    "DeepCaps (ψ)+REM": (90.15, 90.13, 5.55, 78.83, 78.66, 3.92, 36.06),
    "Efficient-CapsNet (φ)+Q": (97.83, 97.81, 1.10, 85.04, 85.03, 1.33, 0),
    "Efficient-CapsNet (φ)+REM": (98.10, 98.08, 0.26, 86.50, 86.50, 0.25, 75.09),
    "Efficient-CapsNet (ψ)+Q": (97.07, 97.07, 1.69, 87.98, 87.95, 1.71, 0),
    "Efficient-CapsNet (ψ)+REM": (97.29, 97.31, 0.38, 88.54, 88.48, 0.33, 68.85),
}


def _with_thesis(setting: Setting) -> Setting:
    if setting.name not in _THESIS:
        return setting
    printed = dict(zip(_METRICS, _THESIS[setting.name], strict=True))
    return replace(setting, thesis={metric: value for metric, value in printed.items() if value})


_LEVELS = "Couplings have as many levels, near 11, as make an even share of the parents one of them:"
_on_views = partial(
    Experiment, chapter=CHAPTER, seeds=3, metrics=_METRICS, budgets={"smoke": SMOKE}, perform=train_and_view
)
register(
    _on_views(
        label="robust:viewpoints-eth80",
        title="Familiar and novel viewpoints on ETH-80, in the form of table novelviewpoints",
        data=("eth80",),
        gpu_minutes=120,
        settings=(*_pairs("eth80", _ETH80, 3, 8), *_without_capsules("eth80", _ETH80, 3, 8)),
        claims=view_claims("robust:viewpoints-eth80"),
        deviations=(
            "ETH-80 stands for smallNORB: 8 classes, photographs at 32 px in colour. Two of ten objects in "
            "each class are tested and never trained on. Familiar elevations are at or near the horizon, "
            "familiar azimuths at most 70 degrees from the front.",
            REDUCED_ETH80,
            "φ are networks trained on familiar elevations, ψ on familiar azimuths.",
            f"{_LEVELS} 9 for eight classes. The thesis has 11, and 6 for the classes of gamma-CapsNet.",
        ),
    )
)
register(
    _on_views(
        label="tab:novelviewpoints",
        title="Familiar and novel viewpoints on smallNORB",
        data=("smallnorb",),
        gpu_minutes=400,
        settings=(
            *map(_with_thesis, _pairs("smallnorb_views", _SMALLNORB, 2, 5)),
            *_without_capsules("smallnorb_views", _SMALLNORB, 2, 5),
        ),
        claims=view_claims("tab:novelviewpoints"),
        deviations=(
            "Networks are those of ETH-80 with two channels and five classes, all at 32 px. gamma-CapsNet "
            "and DeepCaps are not the thesis's ports. Efficient-CapsNet is that of MNIST; its paper has "
            "another for smallNORB.",
            f"{_LEVELS} 11 for five classes, 33 for the 32 hidden capsules of gamma-CapsNet. The thesis has "
            "11 for these, and 6 for the classes of gamma-CapsNet.",
            "Accuracies without quantization are set beside those of tab:novelviewpoints_full_original.",
            "Three seeds, where the thesis has five.",
        ),
    )
)
