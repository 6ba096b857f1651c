"""Checks and times fused EM and local dynamic routing on a CUDA device, and writes JSON to the given path."""

import argparse
import json
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from statistics import median

import torch
import triton

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
from torchcaps.bench.timing import as_graph, cuda_laps
from torchcaps.core.types import Capsules
from torchcaps.kernels import fused_local_dynamic_routing
from torchcaps.kernels.em import launch as em_launch
from torchcaps.kernels.local_dynamic import launch as local_launch
from torchcaps.layers import ConvCaps2d, CoordinateAddition, FcCaps, PositionalEM
from torchcaps.models import create_model
from torchcaps.routing import EMRouting, RoutingShape
from torchcaps.routing.dynamic import dynamic_routing

START = time.monotonic()
warnings.filterwarnings("ignore", message=".*Profiler clears events.*")
EM_SWEEP = {  # children and types a program, warps; None is the default
    "default": None,
    "1x16, 2 warps": (1, 16, 2),
    "1x8, 1 warp": (1, 8, 1),
    "2x16, 2 warps": (2, 16, 2),
    "16x8, 8 warps": (16, 8, 8),
}
MAP_SWEEP = {  # (numbers of the votes a thread, positions beyond those that fill a warp)
    "default": None,
    "32 a thread": (32, 1),
}
SEGCAPS_LAYERS = [  # children, parents, pose and side of the map at 64 px
    (1, 2, 16, 32), (2, 4, 16, 32), (4, 4, 32, 16), (4, 8, 32, 16), (8, 8, 64, 8), (8, 8, 32, 8),
    (8, 8, 32, 16), (16, 4, 32, 16), (4, 4, 16, 32), (8, 4, 16, 32), (4, 2, 16, 64), (3, 1, 16, 64),
]  # fmt: skip


def map_tile(numbers, factor):
    def choose(num_in, num_out, pose):
        sides = [1 << (side - 1).bit_length() for side in (num_in, num_out, pose)]
        spots = factor * max(1, 128 // (sides[1] * sides[2]))
        warps = sides[0] * sides[1] * sides[2] * spots // (32 * numbers)
        return local_launch.Tile(spots, min(max(warps, 1), 8))

    return choose


def em_tiles(kids, out, warps):
    def choose(windows, types, pose):
        tile = em_launch.Tile(kids, min(out, 1 << (types - 1).bit_length()), warps)
        return em_launch.Tiles(fit=tile, votes=tile)

    return choose


@contextmanager
def tiles(em=None, maps=None):
    kept = em_launch.choose_tiles, local_launch.choose_tile
    if em is not None:
        em_launch.choose_tiles = em_tiles(*em)
    if maps is not None:
        local_launch.choose_tile = map_tile(*maps)
    yield
    em_launch.choose_tiles, local_launch.choose_tile = kept


def em_layer(in_types, out_types, stride, dtype=torch.float32):
    torch.manual_seed(1)
    shape = RoutingShape(9 * in_types, out_types, 16)
    routing = PositionalEM(shape, kernel_size=3, stride=stride)
    sizes = {"kernel_size": 3, "stride": stride, "pose_rows": 4, "init_std": 0.5, "routing": routing}
    return ConvCaps2d(in_types, out_types, 16, 16, **sizes).to("cuda", dtype)


def em_class_layer(children, classes, dtype=torch.float32):
    torch.manual_seed(1)
    routing = EMRouting(RoutingShape(children, classes, 16))
    routing = CoordinateAddition(routing, torch.rand(children, 2), (0, 1))
    return FcCaps(children, classes, 16, 16, matrices=16, pose_rows=4, init_std=0.5, routing=routing).to(
        "cuda", dtype
    )


def capsules(*shape):
    torch.manual_seed(2)
    return [torch.randn(*shape, 16, device="cuda"), torch.rand(*shape, device="cuda")]


def layer_grads(layer, inputs, backend, dtype=torch.float32):
    layer.backend = backend
    inputs = [x.to(dtype).requires_grad_() for x in inputs]
    routed = layer(Capsules(*inputs), return_coupling=False)
    torch.manual_seed(3)
    upstream = [torch.randn(x.shape, device="cuda").to(dtype) for x in routed[:2]]
    learned = [*inputs, *layer.parameters()]
    return [x.detach() for x in routed[:2]] + list(torch.autograd.grad(routed[:2], learned, upstream))


def report_errors(name, fused, plain, exact):
    errors = [
        [((x.double() - e).norm() / e.norm()).item() for x, e in zip(side, exact, strict=True)]
        for side in (fused, plain)
    ]
    ok = all(f <= 2 * p + 1.2e-7 for f, p in zip(*errors, strict=True))
    pairs = ", ".join(f"{f:.1e} ({p:.1e})" for f, p in zip(*errors, strict=True))
    print(f"{'ok ' if ok else 'BAD'} {name:28s} {pairs}", flush=True)
    return {"name": name, "ok": ok, "fused": errors[0], "plain": errors[1]}


def check_em(name, make, inputs):
    exact = layer_grads(make(torch.float64), inputs, "torch", torch.float64)
    plain, fused = (layer_grads(make(torch.float32), inputs, backend) for backend in ("torch", "fused"))
    return report_errors(name, fused, plain, exact)


def check_maps(num_in, num_out, pose, side, dtype=torch.float32, **settings):
    torch.manual_seed(4)
    votes = torch.randn(4, num_in, side**2, num_out, pose, device="cuda").to(dtype) * 0.3
    bias = torch.randn(num_out, pose, device="cuda") * 0.1
    upstream = (
        torch.randn(4, num_out, side**2, pose, device="cuda"),
        torch.randn(4, num_out, side**2, device="cuda"),
    )

    def plain(x, b):
        routed = dynamic_routing(x.transpose(1, 2), x[..., 0, 0].transpose(1, 2), bias=b, **settings)
        return routed.poses.transpose(1, 2), routed.activations.transpose(1, 2)

    def run(function, precision):
        inputs = [x.to(precision).requires_grad_() for x in (votes, bias)]
        given = [inputs[0].to(dtype), inputs[1]] if function is not plain else inputs
        out = function(*given)
        return [*out, *torch.autograd.grad(out, inputs, [g.to(out[0].dtype) for g in upstream])]

    exact, usual = run(plain, torch.float64), run(plain, torch.float32)
    fused = run(lambda x, b: fused_local_dynamic_routing(x, b, **settings), torch.float32)
    if dtype != torch.float32:  # the gradient of the votes is rounded to their dtype
        usual[2] = usual[2].to(dtype).float()
    return report_errors(f"maps {num_in}x{num_out}x{pose} {dtype} {settings}", fused, usual, exact)


def median_ms(function, repeats=20):
    return median(cuda_laps(function, repeats))


def make_step(model, images, precision, backend):
    """One update as the engine makes it; the loss is any that reaches every weight."""
    for layer in model.modules():
        if hasattr(layer, "fallback_reason"):
            layer.backend = backend
    optimizer = torch.optim.Adam(model.parameters(), 1e-4, fused=True, capturable=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
            loss = model(images).activations.float().square().mean()
        loss.backward()
        optimizer.step()

    return step


def kernel_times(function, most=14):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        function()
        torch.cuda.synchronize()
    rows = [(e.key[:60], e.count, round(e.device_time_total)) for e in profile.key_averages()]
    rows = sorted((row for row in rows if row[2]), key=lambda row: -row[2])
    total = sum(row[2] for row in rows)
    return total, rows[:most]


def build(name):
    torch.manual_seed(0)
    if name == "em":
        model, shape = create_model("em_capsnet_small"), (128, 2, 32, 32)
    else:
        model, shape = create_model("segcaps_r3", image_size=64), (16, 1, 64, 64)
    model = model.cuda()
    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d):
            module.to(memory_format=torch.channels_last)
    return model, torch.randn(shape, device="cuda").contiguous(memory_format=torch.channels_last)


def timed_step(name, precision, backend, profile=False):
    torch.set_float32_matmul_precision("high" if precision == "bf16" else "highest")
    row = {"case": name, "precision": precision, "backend": backend}
    try:
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated()
        step = make_step(*build(name), precision, backend)
        for _ in range(2):
            step()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        step()
        torch.cuda.synchronize()
        row["peak_mib"] = (torch.cuda.max_memory_allocated() - before) / 2**20
        if profile:
            row["device_us"], row["kernels"] = kernel_times(step, 40)
        row["eager_ms"] = median_ms(step, 10)
        row["graph_ms"] = median_ms(as_graph(step))
    except Exception as error:  # a configuration that does not fit is a result
        row["error"] = repr(error)[:300]
    finally:
        torch.set_float32_matmul_precision("highest")
    numbers = " ".join(f"{k} {v:.3f}" for k, v in row.items() if isinstance(v, float))
    print(f"{name:8s} {precision:5s} {backend:6s} {numbers or row.get('error')}", flush=True)
    for key, count, total in row.get("kernels", [])[:16]:
        print(f"    {total:6d} us {count:3d}x {key}", flush=True)
    return row


EM_LAYERS = {"first": ((8, 16, 2), (128, 14, 14, 8)), "second": ((16, 16, 1), (128, 6, 6, 16))}


def em_pass(which, dtype=torch.float32):
    if which == "classes":
        layer, inputs = em_class_layer(256, 5), capsules(128, 256)
    else:
        sizes, shape = EM_LAYERS[which]
        layer, inputs = em_layer(*sizes), capsules(*shape)
    return lambda: layer_grads(layer, inputs, "fused")


def map_pass(precision, sizes):
    num_in, num_out, pose, side = sizes
    votes = torch.randn(16, num_in, side**2, num_out, pose, device="cuda").to(precision).requires_grad_()
    bias = torch.zeros(num_out, pose, device="cuda", requires_grad=True)

    def run():
        out = fused_local_dynamic_routing(votes, bias)
        torch.autograd.grad(out, [votes, bias], [torch.ones_like(x) for x in out])

    return run


def kernel_rows(name, function):
    function()
    total, rows = kernel_times(function)
    ours = [(key, count, time) for key, count, time in rows if key.endswith("_kernel")]
    print(f"{name:44s} {total:6d} us  " + ", ".join(f"{k} {c}x{t / c:.0f}" for k, c, t in ours), flush=True)
    return {"name": name, "device_us": total, "kernels": rows}


def sweep_em(name):
    with tiles(em=EM_SWEEP[name]):
        return [
            kernel_rows(f"em {which}, {name}", em_pass(which)) for which in ("first", "second", "classes")
        ]


def sweep_maps(name, precision=torch.bfloat16):
    with tiles(maps=MAP_SWEEP[name]):
        return [
            kernel_rows(f"maps {'x'.join(map(str, sizes))}, {name}", map_pass(precision, sizes))
            for sizes in SEGCAPS_LAYERS
        ]


def guarded(function, name):
    try:
        return function(name)
    except Exception as error:
        print(f"{name}: {repr(error)[:300]}", flush=True)
        return [{"name": name, "error": repr(error)[:300]}]


def compile_all():
    """One process for each row of the sweeps, which leaves its kernels in Triton's cache."""
    names = [("em", name) for name in EM_SWEEP] + [("maps", name) for name in MAP_SWEEP]
    return [
        subprocess.Popen([sys.executable, __file__, "--warm", *pair], stdout=subprocess.DEVNULL)
        for pair in names
    ]


def checks():
    return [
        check_em("em first", lambda dtype: em_layer(8, 16, 2, dtype), capsules(16, 14, 14, 8)),
        check_em("em second", lambda dtype: em_layer(16, 16, 1, dtype), capsules(16, 6, 6, 16)),
        check_em("em odd", lambda dtype: em_layer(3, 5, 2, dtype), capsules(3, 9, 7, 3)),
        check_em("em classes", lambda dtype: em_class_layer(256, 5, dtype), capsules(16, 256)),
        check_maps(8, 4, 16, 32),
        check_maps(16, 4, 32, 16),
        check_maps(8, 8, 64, 8),
        check_maps(3, 5, 7, 5, gradient="last", leaky=True),
        check_maps(8, 4, 16, 32, dtype=torch.bfloat16),
    ]


def rows_of(steps):
    """Steps as rows of a benchmark, for the tables in the documents."""
    names = {"em": "em_capsnet_small", "segcaps": "segcaps_r3, 64 px"}
    rows = []
    for step in steps:
        kind, batch = "fused" if step["backend"] == "auto" else "torch", 128 if step["case"] == "em" else 16
        for key, backend in (("eager_ms", kind), ("graph_ms", f"{kind}+graph")):
            if key in step and "cudnn" not in step:
                row = {"suite": "probe", "case": f"{names[step['case']]}, step, {step['precision']}"}
                row |= {"backend": backend, "batch": batch, "ms": step[key]}
                rows.append(row | {"img_s": 1000 * batch / step[key], "peak_mb": step["peak_mib"]})
    return rows


def all_steps(save):
    for name, precision, backend in product(("em", "segcaps"), ("32", "bf16"), ("torch", "auto")):
        save("steps", [timed_step(name, precision, backend, profile=True)])
    torch.backends.cudnn.benchmark = True
    for precision in ("32", "bf16"):
        save("steps", [{"cudnn": "benchmark"} | timed_step("segcaps", precision, "auto")])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", metavar="FILE", type=Path, nargs="?")
    parser.add_argument("--warm", nargs=2, help="only compile this row of a sweep")
    parser.add_argument("--quick", action="store_true", help="no sweep")
    arguments = parser.parse_args()
    if arguments.warm:
        kind, name = arguments.warm
        (sweep_em if kind == "em" else sweep_maps)(name)
        return
    if arguments.out is None or not torch.cuda.is_available():
        parser.error("name the FILE to write, on a machine with a CUDA device")
    compiling = [] if arguments.quick else compile_all()
    report = {"command": "python benchmarks/conv_probe.py FILE", "device": torch.cuda.get_device_name()}
    report |= {"versions": {"torch": torch.__version__, "triton": triton.__version__}}
    report |= {"checks": [], "steps": [], "rows": [], "sweep": []}

    def save(part, rows):
        report[part] += rows
        report["rows"] = rows_of(report["steps"])
        arguments.out.write_text(json.dumps(report, indent=1))

    save("checks", guarded(lambda _: checks(), "checks"))
    for process in compiling:
        process.wait()
    print(f"checked and compiled after {time.monotonic() - START:.0f} s", flush=True)
    all_steps(save)
    rows = [(sweep_em, name) for name in EM_SWEEP] + [(sweep_maps, name) for name in MAP_SWEEP]
    for sweep, name in [] if arguments.quick else rows:
        if time.monotonic() - START < 95:
            save("sweep", guarded(sweep, name))


if __name__ == "__main__":
    main()
