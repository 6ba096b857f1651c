"""What a model is: its size, its input and where it comes from."""

from __future__ import annotations

from typing import Any

from torch import nn

from torchcaps.core import sketching
from torchcaps.models import MODELS

from .flops import count_flops


def count_parameters(module: nn.Module) -> int:
    """How many numbers a module learns, frozen ones included.

    Examples:
        >>> count_parameters(create_model("efficient_capsnet_mnist"))
        161824
    """
    return sum(parameter.numel() for parameter in module.parameters())


def describe_model(name: str) -> dict[str, Any]:
    """Name, family, task, parameters, operations, input, classes and paper of a registered model.

    The model is built without memory for its weights.
    """
    variant = MODELS[name]
    with sketching():
        model = variant.build(variant.config)
    return {
        "name": name,
        "family": variant.family,
        "task": variant.task,
        "params": count_parameters(model),
        "flops": count_flops(model)["total"],
        "input": list(model.image_shape),
        "classes": variant.config.num_classes,
        "paper": variant.paper,
    }
