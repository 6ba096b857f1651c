"""A few epochs of every family on MNIST: `python -m torchcaps.experiments.smoke OUT MINUTES`.

Not an experiment of the thesis: it shows that each architecture trains, and says how little training it got.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from torchcaps.core.errors import UserError
from torchcaps.train import Machine, load_recipe, train

from .gather import summarise, write_results

LABEL = "smoke-mnist"
_COMMAND = "python -m torchcaps.experiments.smoke OUT MINUTES"


@dataclass(frozen=True)
class Setting:
    """One row: a recipe, what is changed of it, how many seeds, and the thesis's figure for that model."""

    name: str
    recipe: str
    changes: tuple[str, ...]
    seeds: int = 1
    thesis: float | None = None  # accuracy with quantized couplings, table mnist-pruned-params
    note: str = ""

    @property
    def protocol(self) -> str:
        """What the runs got, in words."""
        recipe = load_recipe(self.recipe, self.changes)
        data = f"{recipe.data.limit:,} images" if recipe.data.limit else "all images"
        return f"{recipe.epochs} epochs, {data}, bf16{', ' + self.note if self.note else ''}"


_OF_1000 = "thesis: up to 1,000 epochs, quantized couplings"
SETTINGS = (
    Setting(
        "DR-CapsNet, decoder", "mnist/dr_capsnet", ("epochs=25", "optim.decay_steps=500"), 3, 99.56, _OF_1000
    ),
    Setting("Efficient-CapsNet, decoder", "mnist/efficient_capsnet_fast", (), 3, 99.55, _OF_1000),
    Setting("gamma-CapsNet", "mnist/gamma_capsnet", ("epochs=3", "optim.decay=0.5"), 1, 99.50, _OF_1000),
    Setting("DeepCaps, decoder", "mnist/deepcaps", ("epochs=3", "optim.decay=0.5"), 1, 99.51, _OF_1000),
    Setting("convolutional baseline", "mnist/conv_baseline", ("epochs=5", "optim.decay=0.5")),
    Setting(
        "parse CapsNet, five capsule layers",
        "cifar10/parse_capsnet",
        (
            "data.name=mnist",
            "model.in_channels=1",
            "model.image_size=28",
            "data.augment={shift: 2}",
            "epochs=3",
        ),
    ),
    Setting(
        "Eff-ConvCapsNet at 64 px",
        "mnist/effconv_capsnet",
        ("epochs=2", "optim.decay=0.5", "data.limit=20000"),
    ),
    Setting("EM-CapsNet small", "mnist/em_capsnet", ("epochs=2", "optim.decay=0.5", "data.limit=20000")),
)


def planned() -> Iterator[tuple[Setting, int]]:
    """One seed of every setting before the second seed of any."""
    for number in range(max(setting.seeds for setting in SETTINGS)):
        yield from ((setting, 42 + number) for setting in SETTINGS if number < setting.seeds)


def folder_of(out: Path, setting: Setting, seed: int) -> Path:
    """Where one run is kept."""
    return out / f"{setting.recipe.replace('/', '-')}-{seed}"


def run_missing(out: Path, minutes: float, machine: Machine) -> dict[str, str]:
    """Train what has no result yet and can be started in time; the errors of runs that failed."""
    errors = {}
    deadline = time.monotonic() + 60 * minutes
    for setting, seed in planned():
        folder = folder_of(out, setting, seed)
        if time.monotonic() > deadline or (folder / "result.json").is_file():
            continue
        try:
            train(
                load_recipe(setting.recipe, [*setting.changes, f"seed={seed}"]), folder, machine, resume=True
            )
        except (UserError, RuntimeError) as error:
            errors[folder.name] = str(error)
    return errors


def gather(out: Path, results: Path) -> None:
    """Write `results/smoke-mnist.json` from the runs in `out`."""
    rows = []
    for setting in SETTINGS:
        paths = [folder_of(out, setting, 42 + number) / "result.json" for number in range(setting.seeds)]
        runs = [json.loads(path.read_text()) for path in paths if path.is_file()]
        if runs:
            rows.append(
                summarise(
                    runs,
                    setting=setting.name,
                    metric="test_accuracy",
                    thesis=setting.thesis,
                    protocol=setting.protocol,
                )
            )
    write_results(results, LABEL, rows, _COMMAND)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    failed = run_missing(place, float(sys.argv[2]), Machine(precision="bf16"))
    gather(place, place)
    print(json.dumps(failed, indent=1))
