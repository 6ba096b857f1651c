"""How long the explorer takes for each interaction: `python benchmarks/explorer.py --out FILE [RUN ...]`.

Without folders of runs it makes some, untrained, whose times are those of trained ones. `--busy N` lets N
other processes compute meanwhile. Beside the time that a person waits, rows have the processor time of the
program: it hardly depends on what else the machine does.
"""

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from threading import Thread
from time import perf_counter, process_time

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the command has it, before torch is imported

import torch

from torchcaps.explorer import Explorer, Shelf, read_given
from torchcaps.models import create_model
from torchcaps.storage import save_weights, write_text
from torchcaps.train.recipe import Recipe
from torchcaps.train.run import DataCard, provenance, write_recipe

DIGITS = tuple("0123456789")
SOLIDS = ("cube", "tetrahedron")
LARGE = {"name": "synthetic_cifar10", "preprocess": {"resize": 64, "normalize": "none"}}
PARTS = "partwhole:classes=3,branches=3,train=100,test=300"
# networks of three sizes with decoders, and the two tabs that compute: classes, data, model
RUNS = {
    "small": (DIGITS, {"name": "synthetic_mnist"}, {"name": "gamma_capsnet_mnist", "decoder": "fc"}),
    "middle": (DIGITS, {"name": "synthetic_mnist"}, {"name": "dr_capsnet_mnist", "decoder": "fc"}),
    "large": (DIGITS, LARGE, {"name": "deepcaps_64", "decoder": "conv"}),
    "parts": (tuple("012"), {"name": PARTS}, {"name": "dr_capsnet_mnist", "image_size": 32}),
    "pose": (SOLIDS, {"name": "synthetic_cube_tetrahedron"}, {"name": "pose_convnet"}),
}


def make_runs(base: Path) -> list[str]:
    """Untrained runs."""
    for title, (classes, data, model) in RUNS.items():
        settings = {"num_classes": len(classes), **model}
        torch.manual_seed(0)
        network = create_model(**settings)
        channels, height, width = network.image_shape
        mean, std = (0.1,) * channels, (0.3,) * channels
        sizes = {"channels": channels, "height": height, "width": width}
        card = DataCard(classes=classes, mean=mean, std=std, **sizes, fit="crop")
        plain = {"model": settings, "data": {"limit": 100, "validation": 0.2, **data}, "epochs": 1}
        write_recipe(base / title, Recipe.from_plain(plain, "recipe"), card)
        save_weights(base / title / "weights.safetensors", network.state_dict(), {"epoch": 0})
    return [str(base / title) for title in RUNS]


def ask(server: Explorer, verb: str, question: dict[str, object]) -> dict[str, object]:
    """One question over HTTP, as the page asks it."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port)
    headers = {"Content-Type": "application/json", "Cookie": server.entry.cookie}
    connection.request("POST", f"/api/{verb}", json.dumps(question), headers)
    reply = connection.getresponse()
    answer = json.loads(reply.read())
    connection.close()
    if reply.status != 200:
        sys.exit(f"{verb}: {answer['error']}")
    return answer


class Clock:
    """Asks, and keeps the times of each kind of question."""

    def __init__(self, server: Explorer, busy: int) -> None:
        self.server, self.busy = server, busy
        self.times: dict[str, list[tuple[float, float]]] = {}
        self.rows: list[dict[str, object]] = []
        self.made = provenance(torch.device("cpu"))

    def ask(self, verb: str, question: dict[str, object], name: str = "") -> dict[str, object]:
        """The answer."""
        started, worked = perf_counter(), process_time()
        answer = ask(self.server, verb, question)
        self.times.setdefault(name or verb, []).append((perf_counter() - started, process_time() - worked))
        return answer

    def report(self, title: str) -> None:
        """Print and keep the medians and the longest times, in milliseconds; then begin anew."""
        for verb, times in self.times.items():
            waited, worked = ([1000 * each for each in column] for column in zip(*times, strict=True))
            middle = statistics.median(waited)
            first, _, third = statistics.quantiles(waited) if len(waited) > 1 else (middle,) * 3
            row = {
                "suite": "explorer",
                "case": f"{title}: {verb}",
                "busy": self.busy,
                "device": f"cpu, {torch.get_num_threads()} threads",
                "ms": round(middle, 1),
                "most_ms": round(max(waited), 1),
                "processor_ms": round(statistics.median(worked), 1),
                "spread": round((third - first) / middle, 4),
                "repeats": len(waited),
                "load": round(os.getloadavg()[0], 1),
            }
            self.rows.append(row)
            print(
                "  {case:60} {ms:7.1f} ms, at most {most_ms:7.1f}; processor {processor_ms:7.1f}".format(
                    **row
                )
            )
        self.times = {}


def measure(clock: Clock, key: str, repeats: int) -> None:
    """Ask about different images, as the page does."""
    for number in range(repeats):
        image = {"model": key, "image": {"example": number, "of": key}}
        look = clock.ask("look", image)
        if look["last"] is not None and look["last"]["number"] > 1:
            clock.ask("rounds", {**image, "winner": look["winner"]})
        done = False
        while not done and len(clock.times.get("cover", [])) < 3 * (number + 1):
            done = clock.ask("cover", {**image, "winner": look["winner"]})["done"]
        clock.ask("typical", image)
        clock.ask("examples", {"model": key, "start": 0})
        capsule = look["capsule"]
        if capsule is not None:
            clock.ask("reconstruct", {"model": key, "winner": look["winner"], "poses": capsule["poses"]})


def measure_all(server: Explorer, busy: int, repeats: int) -> list[dict[str, object]]:
    """All networks, then all tabs."""
    clock, given = Clock(server, busy), server.shelf.given
    for choice in given.choices:
        started = perf_counter()
        server.shelf.reference(choice.key).wait()
        print(f"{choice.title}: loaded, with its trees, in {perf_counter() - started:.1f} s")
        measure(clock, choice.key, repeats)
        clock.report(choice.title)
    for verb in ("pose", "parts"):
        for item in range(len(given.tabs.get(verb, []))):
            for number in range(repeats + 1):
                name = verb if number else f"{verb}, opened"
                clock.ask(verb, {"item": item, "number": number}, name=name)
    print("tabs")
    clock.report("tab")
    return clock.rows


def main() -> None:
    """Read the arguments, serve, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", nargs="*")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=15)
    chosen = parser.parse_args()
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(chosen.busy)]
    try:
        with tempfile.TemporaryDirectory() as name:
            runs = chosen.runs or make_runs(Path(name))
            with closing(Shelf(read_given(runs))) as shelf, Explorer(shelf) as server:
                shelf.prepare()
                Thread(target=server.serve_forever, daemon=True).start()
                rows = measure_all(server, chosen.busy, chosen.repeats)
                server.shutdown()
    finally:
        for other in others:
            other.kill()
    if chosen.out:
        kept = json.loads(chosen.out.read_text())["rows"] if chosen.out.is_file() else []
        kept = [row for row in kept if row["busy"] != chosen.busy]
        content = {"provenance": provenance(torch.device("cpu")), "rows": kept + rows}
        write_text(chosen.out, json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
