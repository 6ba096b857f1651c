"""Examples that the help of each command ends with; a test reads every one as the command would."""

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
    "bench": ("torchcaps bench routing --quick", "torchcaps bench train --out rows.json"),
    "pose": (
        "torchcaps pose render scene.yaml --out rendered",
        "torchcaps pose train --data rendered --set epochs=20",
        "torchcaps pose predict runs/mine photo.png --out pictures",
    ),
    "data": ("torchcaps data get mnist", "torchcaps data check folder:my_photos"),
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
        "torchcaps uav train maps/*.tif --out runs/uav",
        "torchcaps uav compile-map map.tif --run runs/uav --out map.tcmap",
        "torchcaps uav localize map.tcmap flight.csv images --run runs/uav --out flight",
    ),
    "import-weights": ("torchcaps import-weights keras-efficient-capsnet weights.h5 --out runs/imported",),
}


def epilog(command: str) -> str:
    """The examples of a command, each on its own line."""
    keeps_lines = "\b"
    return "\n".join((keeps_lines, "Examples:", *(f"  {example}" for example in EXAMPLES[command])))
