"""How trunks are trained, pruned and given capsules, and what the networks then cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import torch
from torch import nn

from torchcaps.inspection import count_parameters
from torchcaps.models import BackboneCapsNet, build_model
from torchcaps.storage import read_json
from torchcaps.train import Machine, device_of, load_recipe, load_run, prune_run

from ..plan import Job, Outcome, Setting
from .footprint import METRICS, count_costs, measure_inference, measure_training
from .names import PruningMethod
from .preparation import PREPARATIONS

TINY_TRUNKS = {"resnet50": "resnet_tiny", "mobilenetv1": "mobilenet_tiny"}
TINY_SIZES = {"in_channels": 3, "image_size": 32, "num_classes": 10}


@dataclass(frozen=True, kw_only=True)
class TrunkSetting(Setting):
    """Capsules on a trunk that is pruned to a share `kept` of its FLOPs, by a method of `prune_run`."""

    dataset: str
    trunk: str
    kept: float
    method: PruningMethod = "eagleeye"
    multiple: int = 1  # widths are multiples of it


def compare_trunks(job: Job) -> None:
    """Take the trunk of this seed, prune it, put capsules on it, train them and measure the network.

    Trunks lie beside the runs, in `trunks/`: each is trained, pruned and tuned once for all settings.
    """
    setting, folder = job.run.setting, job.folder / "capsules"
    assert isinstance(setting, TrunkSetting)
    tunes = job.machine.tune_convolutions and job.run.budget == "full"  # each pruned trunk has its own sizes
    job = replace(job, machine=replace(job.machine, tune_convolutions=tunes))
    prepared = _prepared_trunk(job, setting)
    tuned = read_json(prepared / "result.json")
    recipe = replace(job.run.recipe, start_from=str(prepared))
    trained = job.train_and_tidy(recipe, folder)
    network = load_run(folder)
    seconds = [row["seconds"] for row in network.metrics]
    metrics = {
        "trunk_accuracy": tuned["metrics"]["test_accuracy"],
        "epoch_seconds": median(seconds[1:] or seconds),  # the first also captures and tunes
        **_measure(network.model, job.machine, is_frozen=bool(recipe.model.get("freeze_trunk"))),
    }
    widths = tuned["recipe"]["model"].get("trunk_widths")
    extra = {"trunk": setting.trunk, "kept": setting.kept, "widths": widths}
    job.leave_result(replace(trained.with_metrics(metrics), extra=extra))


def _prepared_trunk(job: Job, setting: TrunkSetting) -> Path:
    """The folder of the trained trunk of this seed, pruned and tuned where the setting asks for it."""
    run, store = job.run, job.folder.parent / "trunks"
    is_tiny = run.budget == "smoke"
    multiple = 1 if is_tiny else setting.multiple  # tiny trunks have too few channels for eights
    plan, whole = PREPARATIONS[setting.dataset][run.budget], store / f"{setting.trunk}-{run.seed}"
    tiny = {"name": "trunk_classifier_tiny_test", "trunk": TINY_TRUNKS[setting.trunk], **TINY_SIZES}
    changes = {**plan.trunk, "seed": run.seed, **({"model": tiny} if is_tiny else {})}
    classifier = load_recipe(f"{setting.dataset}/{setting.trunk}_classifier", changes=changes)
    job.train_and_tidy(classifier, whole)
    if setting.kept == 1:
        return whole
    name = f"{whole.name}-{setting.method}-{setting.kept:g}" + (f"-by-{multiple}" if multiple > 1 else "")
    pruned, tuned = (store / f"{name}{suffix}" for suffix in ("-pruned", ""))
    search = replace(plan.search, method=setting.method, flops=setting.kept, multiple=multiple, seed=run.seed)
    prune_run(whole, pruned, search, job.machine)
    recipe = replace(load_recipe(pruned / "recipe.yaml", changes=plan.tuning), start_from=str(pruned))
    job.train_and_tidy(recipe, tuned)
    return tuned


def _measure(model: nn.Module, machine: Machine, *, is_frozen: bool) -> dict[str, float]:
    assert isinstance(model, BackboneCapsNet)
    device = device_of(machine)
    found = count_costs(model)
    if not is_frozen:  # inference is as fast as with a trunk that is fine-tuned
        found |= measure_inference(model, torch.device("cpu"), "32")
        found |= measure_inference(model, device, machine.precision) if device.type == "cuda" else {}
    training = measure_training(model, device, machine.precision)
    return found | {key: value for key, value in training.items() if key in METRICS}


def measure_published(job: Job) -> None:
    """Measure an untrained network in the sizes of the thesis; the time of an epoch is that of its steps."""
    recipe, device, precision = job.run.recipe, job.device, job.machine.precision
    model = build_model(recipe.model)
    assert isinstance(model, BackboneCapsNet)
    metrics = count_costs(model) | measure_inference(model, torch.device("cpu"), "32", (1,))
    if device.type == "cuda":
        metrics |= measure_inference(model, device, precision)
    metrics |= measure_training(model, device, precision)
    if "seconds_per_image" in metrics:
        metrics["epoch_seconds"] = metrics.pop("seconds_per_image") * recipe.data.limit
    parameters = count_parameters(model)
    job.leave_result(Outcome(metrics=metrics, parameters=parameters, seconds=0.0, precision=precision))
