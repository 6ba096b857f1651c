"""Checks and times the fused dynamic-routing kernels on a CUDA device, and writes JSON to the given path."""

import argparse
import json
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
from torchcaps.bench.timing import as_graph, cuda_laps
from torchcaps.core import squash
from torchcaps.kernels import fused_dynamic_routing
from torchcaps.kernels.dynamic import launch
from torchcaps.kernels.dynamic.launch import Tile

DEADLINE = time.monotonic() + 60
SWEEP = {  # the kernels do not see each other's tiles, so one row tries one change of each
    "default": {},
    "kids 8": {"pool": Tile(8), "pose_grad": Tile(8), "weight_grad": Tile(4, stages=1)},
    "kids 4": {"pool": Tile(4, fill=12), "pose_grad": Tile(4), "weight_grad": Tile(8, stages=2)},
    "more fill": {"pool": Tile(4, fill=8), "pose_grad": Tile(4, fill=12), "weight_grad": Tile(8, 16, 2, 1)},
    "most fill": {"pool": Tile(4, fill=16), "pose_grad": Tile(4, fill=16), "weight_grad": Tile(16, 16, 2, 1)},
    "stages 1": {"pool": Tile(4, stages=1), "pose_grad": Tile(4, stages=1), "weight_grad": Tile(4, 32, 1, 1)},
    "stages 3": {"pool": Tile(4, stages=3), "pose_grad": Tile(4, stages=3), "weight_grad": Tile(8, 32, 1, 1)},
    "rows 32": {"pool": Tile(4, 32), "pose_grad": Tile(2, 32), "weight_grad": Tile(8, 32, 2, 1)},
    "narrow": {"pool": Tile(2, fill=16), "pose_grad": Tile(2, fill=12), "weight_grad": Tile(2, stages=1)},
    "chunk 128": {"chunk": 128},
    "chunk 512": {"chunk": 512},
}


def textbook(poses, weight, bias, iterations=3):
    matrices = weight.repeat(poses.shape[1] // weight.shape[0], 1, 1, 1)
    votes = torch.einsum("bip,ipod->biod", poses, matrices)
    logits = votes.new_zeros(votes.shape[:-1])
    for _ in range(iterations):
        routed = squash(torch.einsum("bio,biod->bod", logits.softmax(-1), votes) + bias)
        logits = logits + torch.einsum("biod,bod->bio", votes, routed)
    return routed


def draw(batch, in_caps, matrices, out_caps, in_pose=8, pose=16):
    shapes = [(batch, in_caps, in_pose), (matrices, in_pose, out_caps, pose), (out_caps, pose)]
    scales = [1.0, 0.1, 0.1]
    inputs = [scale * torch.randn(shape, device="cuda") for shape, scale in zip(shapes, scales, strict=True)]
    return [x.requires_grad_() for x in inputs], torch.randn(batch, out_caps, pose, device="cuda")


def with_gradients(function, inputs, incoming):
    routed = function(*inputs)
    return [routed.detach(), *torch.autograd.grad(routed, inputs, incoming.to(routed.dtype))]


def check(name, *shape):
    inputs, incoming = draw(*shape)
    fused = with_gradients(fused_dynamic_routing, inputs, incoming)
    plain = with_gradients(textbook, inputs, incoming)
    exact = with_gradients(textbook, [x.detach().double().requires_grad_() for x in inputs], incoming)
    errors = [
        [((x - e).norm() / e.norm()).item() for x, e in zip(side, exact, strict=True)]
        for side in (fused, plain)
    ]
    ok = all(f <= 2 * p + 1.2e-7 for f, p in zip(*errors, strict=True))
    print(
        f"{'ok ' if ok else 'BAD'} {name:28s} out, du, dW, dbias: "
        + ", ".join(f"{f:.1e} ({p:.1e})" for f, p in zip(*errors, strict=True)),
        flush=True,
    )
    return {"name": name, "ok": ok, "fused": errors[0], "plain": errors[1]}


def median_ms(function, repeats=20):
    return median(cuda_laps(function, repeats))


def measure(inputs, incoming):
    def forward():
        with torch.no_grad():
            fused_dynamic_routing(*inputs)

    def both():
        with_gradients(fused_dynamic_routing, inputs, incoming)

    both()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    both()
    torch.cuda.synchronize()
    row = {"peak_mib": (torch.cuda.max_memory_allocated() - before) / 2**20}
    row |= {"forward_eager": median_ms(forward), "both_eager": median_ms(both)}
    row |= {"forward_graph": median_ms(as_graph(forward)), "both_graph": median_ms(as_graph(both))}
    return row


def kernel_times(inputs, incoming):
    """Device time of each kernel in one forward and backward pass, from the profiler."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        with_gradients(fused_dynamic_routing, inputs, incoming)
        torch.cuda.synchronize()
    rows = [(e.key[:48], e.count, e.device_time_total) for e in profile.key_averages() if e.device_time_total]
    return sorted(rows, key=lambda row: -row[2])


@contextmanager
def settings(tiles, precision="highest"):
    by_shape = launch.choose_tiles
    launch.choose_tiles = lambda *sizes: replace(by_shape(*sizes), **tiles)
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        launch.choose_tiles = by_shape
        torch.set_float32_matmul_precision("highest")


def timed(name, batch, tiles, precision="highest", out_caps=10):
    """One row of the report: total times and memory, and the time of each kernel."""
    row = {"name": name, "batch": batch, "out_caps": out_caps}
    try:
        with settings(tiles, precision):
            drawn = draw(batch, 1152, 1152, out_caps)
            row |= measure(*drawn)
            row["kernels"] = kernel_times(*drawn)
    except Exception as error:  # a configuration that does not fit is a result
        row["error"] = repr(error)[:200]
    numbers = " ".join(f"{k} {v:.3f}" for k, v in row.items() if isinstance(v, float))
    print(f"{name:18s} B={batch:<5d} J={out_caps:<5d} {numbers or row.get('error')}", flush=True)
    parts = [f"{key[:11]} {count}x{total / count:.0f}" for key, count, total in row.get("kernels", [])[:8]]
    print("    " + ", ".join(parts), flush=True)
    return row


def compile_all():
    """Starts one process for each row of the sweep, which leaves its kernels in Triton's cache."""
    return [subprocess.Popen([sys.executable, __file__, "--warm", name]) for name in SWEEP]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", metavar="FILE", type=Path, nargs="?")
    parser.add_argument("--warm", choices=SWEEP, help="only compile this row of the sweep")
    parser.add_argument("--quick", action="store_true", help="no sweep")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("highest")
    if arguments.warm:
        with settings(SWEEP[arguments.warm]):
            with_gradients(fused_dynamic_routing, *draw(512, 1152, 1152, 10))
        return
    if arguments.out is None or not torch.cuda.is_available():
        parser.error("name the FILE to write, on a machine with a CUDA device")
    compiling = [] if arguments.quick else compile_all()
    report = {"device": torch.cuda.get_device_name(), "times": []}
    report["checks"] = [
        check("1152 -> 10", 128, 1152, 1152, 10),
        check("odd", 3, 37, 37, 7, 5, 6),
        check("chunks", 277, 200, 200, 10),
        check("shared over positions", 300, 144, 16, 10),
        check("1000 classes", 8, 64, 64, 1000),
    ]
    for process in compiling:
        process.wait()
    for name in ["default"] if arguments.quick else SWEEP:
        if time.monotonic() < DEADLINE - 4:
            report["times"] += [timed(name, batch, SWEEP[name]) for batch in (128, 1024)]
    if time.monotonic() < DEADLINE - 6:
        report["times"] += [timed("tf32", batch, {}, "high") for batch in (128, 1024)]
    if time.monotonic() < DEADLINE - 8:
        report["times"].append(timed("1000 classes", 128, {}, out_caps=1000))
    arguments.out.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
