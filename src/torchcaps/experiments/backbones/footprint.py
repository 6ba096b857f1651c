"""What a capsule network on a trunk costs: capsules, operations, memory, time and energy."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import torch
from torch import Tensor

from torchcaps.bench import Effort, Work, as_graph, measure_step, release_memory, time_work
from torchcaps.inspection import count_flops
from torchcaps.losses import margin_loss
from torchcaps.models import BackboneCapsNet
from torchcaps.prune import TrunkCost, prunable_trunk
from torchcaps.train.loop import use_channels_last

METRICS = (
    "bottleneck",
    "primary_capsules",
    "forward_gmacs",
    "training_gflops",
    "gpu_memory_gb",
    "epoch_seconds",
    "joules_per_image",
    "cpu_ms_1",
    "cpu_ms_128",
    "gpu_ms_1",
    "gpu_ms_128",
)
BATCH = 128  # as in the thesis
_JOULE_CALLS = 20


def count_costs(model: BackboneCapsNet) -> dict[str, float]:
    """Channels before the capsules, primary capsules, and operations for one image, in billions.

    The FLOPs of training are counted as in the thesis: multiply-adds, once forward and twice backward; a
    frozen trunk has no backward pass.
    """
    trunk = prunable_trunk(model.trunk)
    macs = count_flops(model)["products"] / 2
    frozen = TrunkCost(trunk, model.config.image_size).macs_of_full if model.config.freeze_trunk else 0
    return {
        "bottleneck": float(trunk.out_channels),
        "primary_capsules": float(model.classes.in_caps),
        "forward_gmacs": macs / 1e9,
        "training_gflops": (3 * macs - 2 * frozen) / 1e9,
    }


def measure_training(model: BackboneCapsNet, device: torch.device, precision: str) -> dict[str, float]:
    """Memory in GB, and seconds and joules an image, of training steps on random images.

    Empty without a GPU; joules are left out where the driver does not report them. The model is moved to the
    device and its weights change: give one that is not needed afterwards.
    """
    if device.type != "cuda":
        return {}
    cost = measure_step(model, device, partial(_loss_of_batch, model, device, precision), warm_ups=3)
    joules = _joules_per_call(cost.step, device)
    release_memory(device)
    energy = {} if joules is None else {"joules_per_image": joules / BATCH}
    return {"gpu_memory_gb": cost.gigabytes, "seconds_per_image": cost.ms / 1000 / BATCH, **energy}


def _loss_of_batch(model: BackboneCapsNet, device: torch.device, precision: str) -> Callable[[], Tensor]:
    use_channels_last(model)
    images, labels = _images(model, BATCH, device), torch.zeros(BATCH, dtype=torch.int64, device=device)

    def loss() -> Tensor:
        with _autocast(device, precision):
            output = model(images)
        return margin_loss(output.activations, labels)

    return loss


@torch.no_grad()
def measure_inference(
    model: BackboneCapsNet, device: torch.device, precision: str, batches: tuple[int, ...] = (1, BATCH)
) -> dict[str, float]:
    """Milliseconds of a forward pass for each batch, on a GPU replayed as a CUDA graph."""
    model = model.to(device).eval()
    name = "gpu" if device.type == "cuda" else "cpu"
    if name == "gpu":
        use_channels_last(model)
    effort = Effort.usual(device, quick=True)
    found = {}
    for batch in batches:
        images = _images(model, batch, device)

        def work(images: Tensor = images) -> Tensor:
            with _autocast(device, precision):
                return model(images).activations

        timed: Callable[[], object] = as_graph(work) if name == "gpu" else work
        found[f"{name}_ms_{batch}"] = time_work(timed, device, effort).ms
    return found


def _images(model: BackboneCapsNet, batch: int, device: torch.device) -> Tensor:
    images = torch.randn(batch, *model.image_shape, generator=torch.Generator().manual_seed(0)).to(device)
    return images.to(memory_format=torch.channels_last) if device.type == "cuda" else images


def _autocast(device: torch.device, precision: str) -> AbstractContextManager[object]:
    is_mixed = precision == "bf16" and device.type == "cuda"
    # a captured graph would keep the cache of cast weights
    return torch.autocast("cuda", torch.bfloat16, cache_enabled=False) if is_mixed else nullcontext()


def _joules_per_call(work: Work, device: torch.device) -> float | None:
    """Energy by the driver's counter, which advances in steps; None where it cannot be read."""
    try:
        import pynvml

        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(device.index or 0)
        torch.cuda.synchronize(device)
        before = pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
        for _ in range(_JOULE_CALLS):
            work()
        torch.cuda.synchronize(device)
        return float(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) - before) / 1000 / _JOULE_CALLS
    except Exception:  # no library, no driver, or a device without a counter: the figure is left out
        return None
