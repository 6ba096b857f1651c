"""Chapter 5, efficient capsules: what pruned trunks do to accuracy and cost of the capsules on them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import torch

from torchcaps.inspection import count_parameters
from torchcaps.layers.backbone import TRUNKS as TRUNK_BUILDERS
from torchcaps.models import BackboneCapsNet, build_model
from torchcaps.train import (
    Machine,
    Recipe,
    Watcher,
    load_recipe,
    load_run,
    prune_run,
    train,
)
from torchcaps.train.session import launch

from ..plan import Experiment, PlannedRun, Setting, leave_result, register
from .claims import (
    BASELINES,
    FIGURE,
    FIGURE_CLAIMS,
    PHOTOGRAPH_CLAIMS,
    PHOTOGRAPHS,
    TABLE,
    TABLE_CLAIMS,
    TRUNKS,
    WAYS,
    baseline_name,
    capsnet_name,
    draw_figure,
    published_name,
)
from .footprint import BATCH, METRICS, count_costs, measure_inference, measure_training
from .preparation import PREPARATIONS

_CHAPTER = "Towards Efficient Capsule Networks"
_TINY = {"resnet50": "resnet_tiny", "mobilenetv1": "mobilenet_tiny"}
_TINY_SIZES = "in_channels: 3, image_size: 32, num_classes: 10"


def compare_trunks(run: PlannedRun, folder: Path, machine: Machine, watcher: Watcher) -> dict[str, Any]:
    """Take the trunk of this seed, prune it, put capsules on it, train them and measure the network.

    Trunks lie beside the runs, in `trunks/`: each is trained, pruned and tuned once for all settings.
    """
    trunk, kept = run.setting.options["trunk"], run.setting.options["kept"]
    machine = replace(machine, tune_convolutions=run.budget == "full")  # every pruned trunk has its own sizes
    prepared = _prepared_trunk(run, folder.parent / "trunks", machine, watcher)
    tuned = json.loads((prepared / "result.json").read_text())
    widths = tuned["recipe"]["model"].get("trunk_widths")
    recipe = replace(run.recipe, start_from=str(prepared))
    trained = _train_once(recipe, folder / "capsules", machine, watcher)
    network = load_run(folder / "capsules")
    seconds = [row["seconds"] for row in network.metrics]
    metrics = {
        **trained["metrics"],
        "trunk_accuracy": tuned["metrics"]["test_accuracy"],
        "epoch_seconds": median(seconds[1:] or seconds),  # the first one captures and tunes
        **_measure(network.model, machine, is_frozen=bool(recipe.model.get("freeze_trunk"))),
    }
    facts = {key: trained[key] for key in ("parameters", "seconds", "precision")}
    result = {"metrics": metrics, "trunk": trunk, "kept": kept, "widths": widths, **facts}
    return leave_result(run, folder, launch(machine).device, result=result)


def _prepared_trunk(run: PlannedRun, store: Path, machine: Machine, watcher: Watcher) -> Path:
    data, trunk, kept, method = (run.setting.options[key] for key in ("data", "trunk", "kept", "method"))
    is_tiny = run.budget == "smoke"  # with too few channels for eights
    multiple = 1 if is_tiny else run.setting.options.get("multiple", 1)
    plan, whole = PREPARATIONS[data][run.budget], store / f"{trunk}-{run.seed}"
    changes = [*plan.trunk, f"seed={run.seed}"]
    if is_tiny:
        changes.append(f"model={{name: trunk_classifier_tiny_test, trunk: {_TINY[trunk]}, {_TINY_SIZES}}}")
    _train_once(load_recipe(f"{data}/{trunk}_classifier", changes), whole, machine, watcher)
    if kept == 1:
        return whole
    name = f"{whole.name}-{method}-{kept:g}" + (f"-by-{multiple}" if multiple > 1 else "")
    pruned, tuned = (store / f"{name}{suffix}" for suffix in ("-pruned", ""))
    search = replace(plan.search, method=method, flops=kept, multiple=multiple, seed=run.seed)
    prune_run(whole, pruned, search, machine)
    recipe = replace(load_recipe(pruned / "recipe.yaml", plan.tuning), start_from=str(pruned))
    _train_once(recipe, tuned, machine, watcher)
    return tuned


def _train_once(recipe: Recipe, folder: Path, machine: Machine, watcher: Watcher) -> dict[str, Any]:
    result = train(recipe, folder, machine, resume=True, watcher=watcher)
    (folder / "last.ckpt").unlink(missing_ok=True)  # half a gigabyte, of no use once there is a result
    return result


def _measure(model: Any, machine: Machine, *, is_frozen: bool) -> dict[str, float]:
    device = launch(machine).device
    found = count_costs(model)
    if not is_frozen:  # a frozen trunk answers as fast as one that learnt
        found |= measure_inference(model, torch.device("cpu"), "32")
        found |= measure_inference(model, device, machine.precision) if device.type == "cuda" else {}
    training = measure_training(model, device, machine.precision)
    return found | {key: value for key, value in training.items() if key in METRICS}


def measure_published(run: PlannedRun, folder: Path, machine: Machine, watcher: Watcher) -> dict[str, Any]:
    """Measure an untrained network in the sizes of the thesis; an epoch is as long as its steps."""
    del watcher
    device = launch(machine).device
    model = build_model(run.recipe.model)
    assert isinstance(model, BackboneCapsNet)
    metrics = count_costs(model) | measure_inference(model, torch.device("cpu"), "32", (1,))
    if device.type == "cuda":
        metrics |= measure_inference(model, device, machine.precision)
    metrics |= measure_training(model, device, machine.precision)
    if "seconds_per_image" in metrics:
        metrics["epoch_seconds"] = metrics.pop("seconds_per_image") * run.recipe.data.limit
    parameters = count_parameters(model)
    result = {"metrics": metrics, "parameters": parameters, "seconds": 0.0, "precision": machine.precision}
    return leave_result(run, folder, device, result=result)


def _setting(title: str, kept: float, way: str, data: str = "cifar10") -> Setting:
    trunk = TRUNKS[title]
    is_frozen, is_factorised = way == "frozen", way == "factorised"
    tiny = (
        f"{{name: backbone_capsnet_tiny_test, trunk: {_TINY[trunk]}, {_TINY_SIZES}, decoder: none, "
        f"freeze_trunk: {is_frozen}, factorised: {is_factorised}}}"
    )
    rate = "1e-3" if is_frozen else "2e-4"
    return Setting(
        name=capsnet_name(title, kept, way),
        recipe=f"{data}/{trunk}_capsnet{'_frozen' if is_frozen else ''}",
        changes=("model.factorised=true",) if is_factorised else (),
        options={"data": data, "trunk": trunk, "kept": kept, "method": "eagleeye"},
        budgets={
            "smoke": (f"model={tiny}", *PREPARATIONS[data]["smoke"].capsules),
            "quick": (*PREPARATIONS[data]["quick"].capsules, f"optim.learning_rate={rate}"),
        },
        note="trunk trained here on the same images",
    )


_HALF = _setting("ResNet-50", 0.5, "fine-tuned")


def _baseline(method: str) -> Setting:
    return replace(_HALF, name=baseline_name(method), options={**_HALF.options, "method": method})


def _in_eights(setting: Setting, name: str) -> Setting:
    """The same with widths that matrix units like."""
    return replace(setting, name=name, options={**setting.options, "multiple": 8})


def _photographs(kept: float, way: str) -> Setting:
    setting = _setting("ResNet-50", kept, way, "imagenette")
    return _in_eights(setting, setting.name)


def _published(pruned: int, trunk: str, thesis: tuple[float, ...], *, in_eights: bool = False) -> Setting:
    eights = [-(-width // 8) * 8 for width in TRUNK_BUILDERS[trunk].widths]
    widths = f", trunk_widths: {eights}" if in_eights else ""
    sizes = "image_size: 224, num_classes: 200"
    return Setting(
        name=published_name(1 - pruned / 100, in_eights=in_eights),
        recipe="cifar10/resnet50_capsnet",
        changes=(
            f"model={{name: resnet50_capsnet_64, trunk: {trunk}, {sizes}{widths}}}",
            "data.limit=90000",
            f"batch_size={BATCH}",
            "epochs=1",
            "patience=0",
        ),
        thesis=None if in_eights else dict(zip(_COLUMNS, thesis, strict=True)),
        note="random images, nothing learnt: an epoch is the median step times its length",
    )


_PUBLISHED = {  # pruned FLOPs in percent: trunk, and the thesis's row
    0: ("resnet50", (2048.0, 256.0, 12.9, 47.02, 462.0)),
    25: ("resnet50_flops75", (1970.0, 246.0, 9.8, 43.50, 450.0)),
    50: ("resnet50_flops50", (1947.0, 243.0, 6.7, 39.42, 410.0)),
    75: ("resnet50_flops25", (944.0, 118.0, 3.2, 20.11, 214.0)),
}
_COLUMNS = ("bottleneck", "primary_capsules", "training_gflops", "gpu_memory_gb", "epoch_seconds")
_MEASURING = (
    "Quick runs take the convolutions that cuDNN proposes, and do not time them first.",
    "GPU memory is what PyTorch's allocator handed out at most in a step with a batch of 128.",
)
_TINY_PUBLISHED = f"model={{name: backbone_capsnet_tiny_test, decoder: none, {_TINY_SIZES}}}"

register(
    Experiment(
        label=FIGURE,
        chapter=_CHAPTER,
        title="Accuracy of capsules on pruned trunks against their operations, CIFAR-10 at 64 px",
        data=("cifar10",),
        gpu_minutes=240,
        seeds=3,
        at_once=1,  # runs are timed, and share trunks
        metrics=("test_accuracy", "trunk_accuracy", *METRICS),
        settings=(
            *(_setting(t, kept, way) for kept in (1.0, 0.5, 0.75, 0.25) for t in TRUNKS for way in WAYS),
            *(_setting(t, 1.0, "factorised") for t in TRUNKS),
            *map(_baseline, BASELINES),
            _in_eights(_HALF, f"{_HALF.name}, widths in eights"),
        ),
        perform=compare_trunks,
        draw=draw_figure,
        claims=FIGURE_CLAIMS,
        deviations=(
            "No ImageNet weights: trunks are trained on CIFAR-10 first, then pruned by a search of our own.",
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
    Experiment(
        label=PHOTOGRAPHS,
        chapter=_CHAPTER,
        title="Accuracy of capsules on a pruned ResNet-50 against their operations, Imagenette at 64 px",
        data=("imagenette",),
        gpu_minutes=40,
        seeds=3,
        at_once=1,  # runs are timed, and share trunks
        metrics=("test_accuracy", "trunk_accuracy", *METRICS),
        settings=tuple(_photographs(kept, way) for kept in (1.0, 0.5, 0.75, 0.25) for way in WAYS),
        perform=compare_trunks,
        draw=draw_figure,
        claims=PHOTOGRAPH_CLAIMS,
        deviations=(
            "Not in the thesis, which shows CIFAR-10 at 64 px and Tiny ImageNet at 224 px.",
            "No ImageNet weights: the trunk learns the 8,522 training images from nothing.",
            "All widths are multiples of eight, which a GPU is fast with.",
            *_MEASURING,
        ),
    )
)
register(
    Experiment(
        label=TABLE,
        chapter=_CHAPTER,
        title="Cost of capsules on a pruned ResNet-50 at 224 px, in the sizes of Tiny ImageNet",
        data=(),
        gpu_minutes=2,
        seeds=1,
        at_once=1,
        metrics=METRICS,
        budgets={"smoke": (_TINY_PUBLISHED, "data.limit=100")},
        settings=(
            *(_published(pruned, *row) for pruned, row in _PUBLISHED.items()),
            *(_published(pruned, *row, in_eights=True) for pruned, row in _PUBLISHED.items() if pruned),
        ),
        perform=measure_published,
        claims=TABLE_CLAIMS,
        deviations=(
            "Widths are EagleEye's published ones, as in the thesis; in eights, the next multiples of eight.",
            "No accuracy, for nothing is trained; the thesis has 78, 80, 78 and 74 % on Tiny ImageNet.",
            "The thesis used an A40 and read memory with NVML, which also counts the context and the cache.",
            "Gradients flow through all rounds of routing.",
        ),
    )
)
