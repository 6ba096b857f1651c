"""Images of PartWhole drawn in a second: `python benchmarks/partwhole_rate.py [cpu|cuda] > FILE`."""

import json
import sys
import time

import torch

from torchcaps.data import Design, draw_partwhole
from torchcaps.train.results import device_name

device = torch.device(sys.argv[1] if len(sys.argv) > 1 else "cpu")
counts = {32: 65_536, 64: 32_768, 128: 8_192} if device.type == "cuda" else {32: 4_096, 64: 1_024, 128: 256}
rows = []
for size, count in counts.items():
    design = Design(size=size)
    draw_partwhole(1024 if device.type == "cuda" else 64, design, device=device)
    times = []
    for seed in range(3):
        start = time.perf_counter()
        draw_partwhole(count, design, seed=seed, device=device).images.sum().item()
        times.append(time.perf_counter() - start)
    rows.append({"size": size, "images": count, "images_per_second": round(count / sorted(times)[1])})
print(json.dumps({"device": device_name(device), "torch": torch.__version__, "rows": rows}, indent=1))
