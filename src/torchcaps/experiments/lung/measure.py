"""What a trained network is worth on the regions of its test patients, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from torchcaps.apps.lung import bootstrap_mean, dice
from torchcaps.bench import Effort, measure_step, release_memory, time_work
from torchcaps.core import evaluating
from torchcaps.losses import DiceCrossEntropyLoss
from torchcaps.models import Network
from torchcaps.storage import read_mapping
from torchcaps.train import Run, load_split
from torchcaps.train.tasks import predicted_masks

ByPatient = Mapping[str, Sequence[float]]
_BATCH = 16


def dice_by_patient(run: Run, prepared: Path, split: Path, data_dir: Path) -> dict[str, list[float]]:
    """The Dice of each test region, by patient.

    Args:
        run: A trained network.
        prepared: The folder with the manifest.
        split: The folder whose `test.txt` names the regions.
        data_dir: From which the recipe's folder is found.
    """
    names = (split / "test.txt").read_text(encoding="utf-8").split()
    regions = read_mapping(prepared / "manifest.json")["regions"]
    examples, pipeline = load_split(run, "test", data_dir=data_dir)
    found: list[float] = []
    with torch.no_grad(), evaluating(run.model):
        for images, targets in examples.batches(_BATCH):
            batch = pipeline.for_evaluation(images, targets)
            output = run.task.call(run.model, batch.inputs, None)
            assert isinstance(batch.targets, Tensor)
            masks = (predicted_masks(output.activations) > 0, batch.targets > 0)
            found += map(dice, *(each.cpu().numpy() for each in masks))
    by_patient: dict[str, list[float]] = {}
    for name, of_region in zip(names, found, strict=True):
        by_patient.setdefault(regions[name]["patient"], []).append(of_region)
    return by_patient


def summarise_dice(by_patient: ByPatient) -> dict[str, float]:
    """The mean Dice of regions with its interval over patients, and the share of nodules that were missed."""
    mean = bootstrap_mean(by_patient)
    every = [each for some in by_patient.values() for each in some]
    found = {"region_dice": mean.mean, "region_dice_low": mean.low, "region_dice_high": mean.high}
    known = {key: value for key, value in found.items() if value is not None}
    return {**known, "missed_share": sum(each == 0 for each in every) / len(every)}


def measure_costs(network: Network, device: torch.device, *, batch: int = _BATCH) -> dict[str, float]:
    """Milliseconds of one region, and on a GPU memory in GB and milliseconds of a training step.

    The network is moved and its weights change: give one that is not needed afterwards.
    """
    effort = Effort.usual(device, quick=True)
    one = torch.randn(1, *network.image_shape, generator=torch.Generator().manual_seed(0)).to(device)
    network = network.to(device).eval()
    with torch.no_grad():
        kind = "gpu" if device.type == "cuda" else "cpu"
        found = {f"{kind}_ms_1": time_work(lambda: network(one), device, effort).ms}
    if device.type != "cuda":
        return found

    def prepare() -> Callable[[], Tensor]:
        images = one.expand(batch, -1, -1, -1).contiguous()
        masks = torch.zeros(batch, *images.shape[2:], dtype=torch.uint8, device=device)
        loss = DiceCrossEntropyLoss()
        return lambda: loss(network(images), masks)

    cost = measure_step(network, device, prepare)
    release_memory(device)
    return {**found, "gpu_memory_gb": cost.gigabytes, "step_ms": cost.ms}
