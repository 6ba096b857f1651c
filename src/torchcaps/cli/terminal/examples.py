"""Examples that the help of each command ends with; a test reads every one as the command would."""

from __future__ import annotations

from collections.abc import Sequence

FIRST_STEPS = (
    "torchcaps predict efficient_capsnet_mnist.mnist digit.jpg",
    "torchcaps train photos/efficient_capsnet --data my_photos",
    "torchcaps app",
)
EXAMPLES: dict[str, tuple[str, ...]] = {
    "list": ("torchcaps list models", 'torchcaps list recipes "mnist/*"'),
    "train": (
        "torchcaps train photos/efficient_capsnet --data my_photos",
        "torchcaps train mnist/dr_capsnet --set epochs=10 --set batch_size=64",
        "torchcaps train my.yaml --out runs/mine --resume",
    ),
    "eval": (
        "torchcaps eval runs/mnist-dr_capsnet",
        "torchcaps eval runs/mine --split validation --health",
        "torchcaps eval runs/a runs/b --suite affine --figure affine.png",
    ),
    "predict": (
        "torchcaps predict runs/mine photo.jpg --top 3",
        "torchcaps predict efficient_capsnet_mnist.mnist digit.jpg",
        "torchcaps predict runs/mine test:17",
        'torchcaps predict runs/mine folder "more/*.png" --json',
    ),
    "explain": (
        "torchcaps explain runs/mine photo.jpg",
        "torchcaps explain runs/mine test:17 --out pages",
        "torchcaps explain runs/mine test:3 test:17 --explorer",
    ),
    "app": ("torchcaps app", "torchcaps app runs/mnist-dr_capsnet runs/mnist-dr_capsnet-rem"),
    "recipe": ("torchcaps recipe show mnist/dr_capsnet", "torchcaps recipe show my.yaml --set epochs=3"),
    "parse": ("torchcaps parse runs/mine",),
    "rem": (
        "torchcaps rem mnist/dr_capsnet_rem",
        "torchcaps rem photos/efficient_capsnet --data my_photos",
        "torchcaps rem runs/mnist-dr_capsnet runs/mnist-dr_capsnet-rem",
    ),
    "shrink": ("torchcaps shrink runs/mnist-dr_capsnet-rem",),
    "prune": ("torchcaps prune runs/trunk --flops 0.5 --candidates 20",),
    "export": (
        "torchcaps export runs/mine --format onnx",
        "torchcaps predict runs/mine/model.onnx photo.jpg",
    ),
    "demo": ("torchcaps demo", "torchcaps demo --out my_demo"),
    "reproduce": ("torchcaps reproduce --list", "torchcaps reproduce smoke-mnist --budget quick"),
    "bench": (
        "torchcaps bench routing --quick",
        "torchcaps bench train --out rows.json",
        "torchcaps bench models --quick --minutes 5",
        "torchcaps bench segmentation --quick",
        "torchcaps bench render --quick",
        "torchcaps bench filter --quick",
        "torchcaps bench partwhole --quick",
        "torchcaps bench chart rows.json --out pictures",
    ),
    "pose": (
        "torchcaps pose render scene.yaml --out rendered",
        "torchcaps pose train --data rendered --set epochs=20",
        "torchcaps pose eval runs/mine",
        "torchcaps pose predict runs/mine photo.png --out pictures",
    ),
    "data": (
        "torchcaps data get mnist",
        "torchcaps data check folder:my_photos",
        "torchcaps data draw drawn --count 100 --pictures",
    ),
    "lung": (
        "torchcaps lung phantom phantom --patients 20",
        "torchcaps lung prepare LIDC-IDRI --out prepared",
        "torchcaps lung train prepared --model segcaps_r3 --share 0.5",
        "torchcaps lung eval runs/lung-segcaps_r3 prepared",
        "torchcaps lung segment scan --run runs/lung-segcaps_r3 --out found",
    ),
    "weights": (
        "torchcaps weights list",
        "torchcaps weights get efficient_capsnet_mnist.mnist",
        "torchcaps weights pack runs/mine efficient_capsnet_mnist.mnist --half",
    ),
    "uav": (
        "torchcaps uav terrain maps",
        "torchcaps uav stack maps --out maps.npz",
        "torchcaps uav train maps/*.tif --out runs/uav",
        "torchcaps uav eval maps/*.tif --run runs/uav",
        "torchcaps uav abbrief maps/*.tif --out runs/abbrief",
        "torchcaps uav building-ratio maps/*.tif --out runs/buildings",
        "torchcaps uav compile-map maps/summer.tif --run runs/uav --out map.tcmap",
        "torchcaps uav simulate maps/autumn.tif --run runs/uav --out flight",
        "torchcaps uav localize map.tcmap flight/flight.csv flight/images --run runs/uav --out found",
        "torchcaps uav stream map.tcmap --run runs/uav --images flight/images < updates.jsonl",
    ),
    "import-weights": (
        "torchcaps import-weights keras-efficient-capsnet weights.h5 --out runs/imported",
        "torchcaps import-weights torchvision-resnet resnet50.pth --out trunk.safetensors",
    ),
}


def epilog(command: str) -> str:
    """The examples of a command, or of one of a group: "data get" has those of "data" that begin so."""
    group, _, rest = command.partition(" ")
    begins = f"torchcaps {command} " if rest else ""
    return as_epilog([example for example in EXAMPLES[group] if f"{example} ".startswith(begins)])


def as_epilog(examples: Sequence[str]) -> str:
    """The examples as the end of a help text, each on its own line."""
    keeps_lines = "\b"
    return "\n".join((keeps_lines, "Examples:", *(f"  {example}" for example in examples)))
