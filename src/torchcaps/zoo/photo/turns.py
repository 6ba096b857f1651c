"""Whether a digit on a turned page would be another one, by what a network says of its turns."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int64
from torch import Tensor

_WAYS = ("a quarter to the left", "upside down", "a quarter to the right")
_LEAD = 0.1  # one of several that were tried; `torchcaps eval RUN --suite turns` measures what it gives


def better_turns(activations: Float[Tensor, "batch 4 classes"]) -> Int64[Tensor, " batch"]:
    """How many quarters to the left each image would have to be turned, by what a network says of its turns.

    It is 0 where no turn makes the network surer of another class by 0.1 than it is of the first one.

    Args:
        activations: Of each image as it is, and turned to the left by one, two and three quarters.
    """
    certainty, classes = activations.max(2)
    lead, turn = (certainty - certainty[:, :1]).max(1)
    is_other = classes.gather(1, turn.unsqueeze(1)).squeeze(1) != classes[:, 0]
    return torch.where(is_other & (lead > _LEAD), turn, 0)


def say_turn(activations: Float[Tensor, "4 classes"], classes: Sequence[str]) -> str:
    """What a better turn means for somebody who photographed a digit; "" where there is none."""
    quarters = int(better_turns(activations.unsqueeze(0)))
    if not quarters:
        return ""
    activation, number = activations[quarters].max(0)
    return (
        f"turned {_WAYS[quarters - 1]} it would be {classes[int(number)]} (activation {activation:.3f}): "
        "does it stand upright?"
    )
