"""Install a wheel in an empty environment and use it: `python packaging/smoke.py dist/*.whl`.

`--python PATH` is the Python of that environment. `--without-torch` is for one that has no build of PyTorch
at hand: every file is compiled to byte code and what needs no PyTorch is run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

MOST_BYTES = 13 * 10**6
WANTED = (
    "torchcaps/py.typed",
    "torchcaps/zoo/files/efficient_capsnet_mnist.mnist/weights.safetensors",
    "torchcaps/viz/templates/tree.js",
    "torchcaps/explorer/templates/explorer.html",
    "torchcaps/recipes/mnist/dr_capsnet.yaml",
)
UNWANTED = ("tests/", "results/", "benchmarks/", "docs/", "examples/")
LIGHT = ("typer>=0.15", "rich>=13", "PyYAML>=6", "numpy>=1.26", "pillow>=10")
FORWARD = """
import torch, torchcaps
model = torchcaps.create_model("dr_capsnet_mnist").eval()
with torch.no_grad():
    output = model(torch.rand(2, 1, 28, 28), return_routing=True)
assert output.activations.shape == (2, 10), output.activations.shape
assert torch.allclose(output.layers[0].routed.coupling.sum(-1), torch.ones(2, 1152))
print(f"dr_capsnet_mnist: {torchcaps.count_parameters(model):,} parameters, answers two images")
"""
DIGIT = """
from PIL import Image, ImageDraw
page = Image.new("L", (200, 200), 235)
ImageDraw.Draw(page).line([(104, 40), (98, 160)], fill=30, width=14)
page.save("digit.png")
"""
WITHOUT_TORCH = """
import compileall, importlib, sys, torchcaps
from pathlib import Path
folder = Path(torchcaps.__file__).parent
assert compileall.compile_dir(folder, quiet=1, force=True), "a file does not compile"
commands = [f"torchcaps.cli.{path.stem}" for path in (folder / "cli").glob("[a-z]*.py")]
for name in commands:
    importlib.import_module(name)
assert "torch" not in sys.modules
number = len(list(folder.rglob("*.py")))
print(f"{number} files compile on Python {sys.version.split()[0]}, {len(commands)} commands import")
"""


def check_contents(wheel: Path) -> None:
    """The wheel holds what runs need and nothing else, and names the repository that publishes it."""
    archive = zipfile.ZipFile(wheel)
    names = archive.namelist()
    missing = [name for name in WANTED if name not in names]
    extra = [name for name in names if name.startswith(UNWANTED) or "__pycache__" in name]
    size = wheel.stat().st_size
    if missing or extra or size > MOST_BYTES:
        sys.exit(f"{wheel.name}: {size:,} bytes, lacks {missing}, should not hold {extra[:5]}")
    (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
    urls = archive.read(metadata).decode().count("\nProject-URL: ")
    if os.environ.get("PROJECT_URL") and not urls:
        sys.exit(f"{wheel.name}: PROJECT_URL is set, and the metadata have no Project-URL")
    print(f"{wheel.name}: {len(names)} files, {size / 2**20:.2f} MiB, {urls} project URLs")


def use(wheel: Path, python: str, folder: Path, has_torch: bool) -> None:
    """Install the wheel below `folder` and run it there, away from the repository."""
    environment = folder / "environment"
    run(folder, python, "-m", "venv", environment)
    own, command = environment / "bin" / "python", environment / "bin" / "torchcaps"
    pip = (own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(folder, *pip, *([wheel] if has_torch else ["--no-deps", wheel]))
    if not has_torch:
        run(folder, *pip, *LIGHT)
    run(folder, command, "--version")
    run(folder, command, "--help", shown=1)
    if not has_torch:
        run(folder, own, "-c", WITHOUT_TORCH)
        return
    run(folder, command, "list", "models", "dr_capsnet*", shown=3)
    run(folder, own, "-c", FORWARD)
    run(folder, own, "-c", DIGIT)
    found = run(folder, command, "predict", "efficient_capsnet_mnist.mnist", "digit.png", shown=3)
    if "digit.png: 1" not in " ".join(found.split()):
        sys.exit(f"a vertical stroke should be a one: {found}")


def run(folder: Path, *command: str | Path, shown: int = 5) -> str:
    """The output of a command, of which the first lines are printed; a failure ends the program."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=_environment(),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    for line in done.stdout.strip().splitlines()[:shown]:
        print(f"  {line}")
    return done.stdout


def _environment() -> dict[str, str]:
    """Ours without what would let the command find the repository or another Python."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "TORCHCAPS"))}


def main() -> None:
    """Read the arguments, look into the wheel, use it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--without-torch", action="store_true")
    given = parser.parse_args()
    check_contents(given.wheel)
    with tempfile.TemporaryDirectory() as name:
        use(given.wheel.resolve(), given.python, Path(name), not given.without_torch)
    print("the wheel works" if not given.without_torch else "the wheel installs; no network was run")


if __name__ == "__main__":
    main()
