"""Checks and times the fused dynamic-routing kernels on a CUDA device, and writes JSON to the given path."""

import argparse
import json
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
from torchcaps.core import squash
from torchcaps.kernels import dynamic_triton, fused_dynamic_routing
from torchcaps.kernels.dynamic_triton import Tile

DEADLINE = time.monotonic() + 85
SWEEP = {
    "default": {},
    "kids 4": {"pool": Tile(4), "pose_grad": Tile(4), "weight_grad": Tile(4, stages=1)},
    "rows 64 warps 4": {"pool": Tile(8, 64, 4), "pose_grad": Tile(8, 64, 4)},
    "rows 32 warps 2": {"pool": Tile(8, 32, 2), "pose_grad": Tile(4, 32, 2)},
    "weight 16x16 w2": {"weight_grad": Tile(16, 16, 2, 1)},
    "weight 32x32 w4": {"weight_grad": Tile(32, 16, 4, 1)},
    "stages 3": {"pool": Tile(8, stages=3), "pose_grad": Tile(8, stages=3)},
    "stages 1": {"pool": Tile(8, stages=1), "pose_grad": Tile(8, stages=1)},
    "fewer slots": {"warps": 4 * 132},
    "more slots": {"warps": 16 * 132},
    "grad kids 4": {"pose_grad": Tile(4)},
    "grad 64 w4 kids 4": {"pose_grad": Tile(4, 64, 4)},
    "weight rows 32 w2": {"weight_grad": Tile(8, 32, 2, 1)},
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
    times = []
    for _ in range(repeats):
        start, stop = torch.cuda.Event(True), torch.cuda.Event(True)
        start.record()
        function()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop))
    return sorted(times)[repeats // 2]


def graphed(function):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        function()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph.replay


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
    row |= {"forward_graph": median_ms(graphed(forward)), "both_graph": median_ms(graphed(both))}
    return row


def kernel_times(inputs, incoming):
    """Device time of each kernel in one forward and backward pass, from the profiler."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        with_gradients(fused_dynamic_routing, inputs, incoming)
        torch.cuda.synchronize()
    rows = [(e.key[:48], e.count, e.device_time_total) for e in profile.key_averages() if e.device_time_total]
    return sorted(rows, key=lambda row: -row[2])


def timed(results, name, shape, tiles, precision="highest"):
    dynamic_triton.override.clear()
    dynamic_triton.override.update(tiles)
    torch.set_float32_matmul_precision(precision)
    try:
        row = {"name": name, "shape": shape, **measure(*draw(*shape))}
    except Exception as error:  # a configuration that does not fit is a result
        row = {"name": name, "shape": shape, "error": repr(error)[:200]}
    finally:
        dynamic_triton.override.clear()
        torch.set_float32_matmul_precision("highest")
    numbers = " ".join(f"{k} {v:.3f}" for k, v in row.items() if isinstance(v, float))
    print(f"{name:22s} B={shape[0]:<5d} J={shape[3]:<5d} {numbers or row.get('error')}", flush=True)
    results.append(row)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("highest")
    report = {"device": torch.cuda.get_device_name(), "checks": [], "times": []}
    report["checks"].append(check("1152 -> 10", 128, 1152, 1152, 10))
    report["checks"].append(check("odd", 3, 37, 37, 7, 5, 6))
    report["checks"].append(check("shared over positions", 33, 1152, 32, 10))
    report["checks"].append(check("1000 classes", 8, 64, 64, 1000))
    times = report["times"]
    timed(times, "default", (128, 1152, 1152, 10), {})
    timed(times, "default", (1024, 1152, 1152, 10), {})
    report["kernels"] = {}
    for batch in (128, 1024):
        report["kernels"][batch] = kernel_times(*draw(batch, 1152, 1152, 10))
        for key, count, total in report["kernels"][batch][:9]:
            print(f"    B={batch} {key:48s} x{count} {total:8.1f} us", flush=True)
    timed(times, "tf32", (128, 1152, 1152, 10), {}, "high")
    for name, tiles in list(SWEEP.items())[1:]:
        if time.monotonic() < DEADLINE - 12:
            timed(times, name, (128, 1152, 1152, 10), tiles)
            timed(times, name, (1024, 1152, 1152, 10), tiles)
            out.write_text(json.dumps(report, indent=1))
    if time.monotonic() < DEADLINE - 8:
        timed(times, "1000 classes", (128, 1152, 1152, 1000), {})
    out.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
