"""Chapter 5, efficient capsules: accuracy and cost of capsules on pruned trunks."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from torchcaps.layers.backbone import TRUNKS as TRUNK_BUILDERS

from ..plan import Experiment, Setting, register
from .claims import FIGURE_CLAIMS, PHOTOGRAPH_CLAIMS, TABLE_CLAIMS
from .figure import draw_figure
from .footprint import BATCH, METRICS
from .names import (
    BASELINES,
    FIGURE,
    PHOTOGRAPHS,
    TABLE,
    TRUNKS,
    WAYS,
    PruningMethod,
    baseline_name,
    capsnet_name,
    published_name,
)
from .perform import TINY_SIZES, TINY_TRUNKS, TrunkSetting, compare_trunks, measure_published
from .preparation import PREPARATIONS

CHAPTER = "Towards Efficient Capsule Networks"
_SAME_IMAGES = "trunk trained here on the same images"
_ELSEWHERE = (
    "The thesis's sentences on accuracy are about trunks trained on ImageNet, whose images and weights "
    "cannot be downloaded here, and are not judged: on Tiny ImageNet half of the FLOPs pruned keeps the "
    "accuracy and a quarter pruned improves it; frozen trunks do poorly, less so with more primary capsules; "
    "on fine-tuned ones more capsules do not always help.",
    "Our search may leave more primary capsules where it prunes more.",
)


def _setting(title: str, kept: float, way: str, dataset: str = "cifar10") -> TrunkSetting:
    trunk = TRUNKS[title]
    is_frozen, is_factorised = way == "frozen", way == "factorised"
    tiny = {
        "name": "backbone_capsnet_tiny_test",
        "trunk": TINY_TRUNKS[trunk],
        **TINY_SIZES,
        "decoder": "none",
        "freeze_trunk": is_frozen,
        "factorised": is_factorised,
    }
    preparations = PREPARATIONS[dataset]
    return TrunkSetting(
        name=capsnet_name(title, kept, way),
        recipe=f"{dataset}/{trunk}_capsnet{'_frozen' if is_frozen else ''}",
        changes={"model.factorised": True} if is_factorised else {},
        dataset=dataset,
        trunk=trunk,
        kept=kept,
        budgets={
            "smoke": {"model": tiny, **preparations["smoke"].capsules},
            "quick": {**preparations["quick"].capsules, "optim.learning_rate": 1e-3 if is_frozen else 2e-4},
        },
        note=_SAME_IMAGES,
    )


_HALF = _setting("ResNet-50", 0.5, "fine-tuned")


def _baseline(method: PruningMethod) -> TrunkSetting:
    return replace(_HALF, name=baseline_name(method), method=method)


def _in_eights(setting: TrunkSetting, name: str) -> TrunkSetting:
    """The same with widths that matrix units are fast with."""
    return replace(setting, name=name, multiple=8)


def _photographs(kept: float, way: str) -> TrunkSetting:
    setting = _setting("ResNet-50", kept, way, "imagenette")
    return _in_eights(setting, setting.name)


def _published(pruned: int, trunk: str, thesis: tuple[float, ...], *, in_eights: bool = False) -> Setting:
    eights = [-(-width // 8) * 8 for width in TRUNK_BUILDERS[trunk].widths]
    model = {
        "name": "resnet50_capsnet_64",
        "trunk": trunk,
        "image_size": 224,
        "num_classes": 200,
        **({"trunk_widths": eights} if in_eights else {}),
    }
    return Setting(
        name=published_name(1 - pruned / 100, in_eights=in_eights),
        recipe="cifar10/resnet50_capsnet",
        changes={
            "model": model,
            "data.limit": 90_000,
            "batch_size": BATCH,
            "epochs": 1,
            "patience": 0,
        },
        thesis={} if in_eights else dict(zip(_COLUMNS, thesis, strict=True)),
        note="random images, nothing trained: the epoch time is the median step times the number of steps",
    )


_PUBLISHED = {  # pruned FLOPs in percent: trunk, and the thesis's row
    0: ("resnet50", (2048.0, 256.0, 12.9, 47.02, 462.0)),
    25: ("resnet50_flops75", (1970.0, 246.0, 9.8, 43.50, 450.0)),
    50: ("resnet50_flops50", (1947.0, 243.0, 6.7, 39.42, 410.0)),
    75: ("resnet50_flops25", (944.0, 118.0, 3.2, 20.11, 214.0)),
}
_COLUMNS = ("bottleneck", "primary_capsules", "training_gflops", "gpu_memory_gb", "epoch_seconds")
_MEASURING = (
    "Quick runs use the convolutions that cuDNN proposes, without timing them first.",
    "GPU memory is the most that PyTorch's allocator handed out in a step with a batch of 128.",
)
_TINY_PUBLISHED = {"name": "backbone_capsnet_tiny_test", "decoder": "none", **TINY_SIZES}

_on_trunks = partial(
    Experiment,
    chapter=CHAPTER,
    seeds=3,
    at_once=1,  # runs are timed, and share trunks
    metrics=("test_accuracy", "trunk_accuracy", *METRICS),
    perform=compare_trunks,
    draw=draw_figure,
)
register(
    _on_trunks(
        label=FIGURE,
        title="Accuracy of capsules on pruned trunks against their operations, CIFAR-10 at 64 px",
        data=("cifar10",),
        gpu_minutes=240,
        settings=(
            *(_setting(t, kept, way) for kept in (1.0, 0.5, 0.75, 0.25) for t in TRUNKS for way in WAYS),
            *(_setting(t, 1.0, "factorised") for t in TRUNKS),
            *map(_baseline, BASELINES),
            _in_eights(_HALF, f"{_HALF.name}, widths in eights"),
        ),
        claims=FIGURE_CLAIMS,
        deviations=(
            "No ImageNet weights: trunks are trained on CIFAR-10 first, then pruned by a search of our own.",
            *_ELSEWHERE,
            "Only CIFAR-10 at 64 px; the thesis also shows Tiny ImageNet at 224 px. Photographs are in "
            f"{PHOTOGRAPHS}.",
            "Pruned trunks are tuned with Adam for a few epochs, not with SGD and a cosine for 120.",
            "Runs of commit 94503df8 let gradients flow through all rounds of routing, and added brightness "
            "where the recipe now multiplies by it.",
            *_MEASURING,
        ),
    )
)
register(
    _on_trunks(
        label=PHOTOGRAPHS,
        title="Accuracy of capsules on a pruned ResNet-50 against their operations, Imagenette at 64 px",
        data=("imagenette",),
        gpu_minutes=40,
        settings=tuple(_photographs(kept, way) for kept in (1.0, 0.5, 0.75, 0.25) for way in WAYS),
        claims=PHOTOGRAPH_CLAIMS,
        deviations=(
            "Not in the thesis, which shows CIFAR-10 at 64 px and Tiny ImageNet at 224 px.",
            "No ImageNet weights: the trunk is trained from scratch on the 8,522 training images.",
            *_ELSEWHERE,
            "All widths are multiples of eight, with which a GPU is fast.",
            *_MEASURING,
        ),
    )
)
register(
    Experiment(
        label=TABLE,
        chapter=CHAPTER,
        title="Cost of capsules on a pruned ResNet-50 at 224 px, in the sizes of Tiny ImageNet",
        data=(),
        gpu_minutes=6,
        seeds=3,  # nothing is trained, but memory and time are measured
        at_once=1,
        metrics=METRICS,
        budgets={"smoke": {"model": _TINY_PUBLISHED, "data.limit": 100}},
        settings=(
            *(_published(pruned, *row) for pruned, row in _PUBLISHED.items()),
            *(_published(pruned, *row, in_eights=True) for pruned, row in _PUBLISHED.items() if pruned),
        ),
        perform=measure_published,
        claims=TABLE_CLAIMS,
        counted=("bottleneck", "primary_capsules", "training_gflops"),
        other_data=("gpu_memory_gb", "epoch_seconds"),  # random images, on another GPU
        deviations=(
            "Widths are EagleEye's published ones, as in the thesis: a bottleneck that agrees says that the "
            "network is the same, not that a search found it. In eights: the next multiples of eight.",
            "Nothing is trained: there is no accuracy. The thesis has 78, 80, 78 and 74 % on Tiny ImageNet.",
            "The thesis used an A40 and read memory with NVML, which also counts the context and the cache.",
            "Gradients flow through all rounds of routing.",
        ),
    )
)
