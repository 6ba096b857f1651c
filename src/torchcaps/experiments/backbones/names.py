"""The settings of the chapter on efficient capsules, by name."""

from __future__ import annotations

from typing import Literal

TRUNKS = {"ResNet-50": "resnet50", "MobileNetV1": "mobilenetv1"}
WAYS = ("fine-tuned", "frozen")
PruningMethod = Literal["eagleeye", "l1", "random"]
BASELINES: dict[PruningMethod, str] = {
    "l1": "by one ratio and L1",
    "random": "by one ratio and chance",
}
FIGURE, PHOTOGRAPHS, TABLE = "fig:flops_vs_acc", "beyond:flops-imagenette", "tab:performance-dynamiccaps"
SHARES = (1.0, 0.75, 0.5, 0.25)


def capsnet_name(trunk: str, kept: float, way: str) -> str:
    """The setting of capsules on a trunk of which that share of FLOPs is kept."""
    return f"{trunk}, {100 * (1 - kept):.0f} % pruned, {way}"


def baseline_name(method: PruningMethod) -> str:
    """The setting of a ResNet-50 that is pruned by half in a simpler way than EagleEye's."""
    return f"ResNet-50, 50 % pruned {BASELINES[method]}, fine-tuned"


def published_name(kept: float, *, in_eights: bool = False) -> str:
    """The setting of the published widths with that share of FLOPs."""
    return f"ResNet-50, {100 * (1 - kept):.0f} % pruned" + (", widths in eights" if in_eights else "")
