"""Weights of torchvision's ResNets as a state dict of our trunks."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from torchcaps.core import sketching
from torchcaps.layers.backbone import create_trunk

from .agreement import StateDict, require_same_names, require_shape


def torchvision_resnet(state_dict: Mapping[str, Tensor], trunk: str = "resnet50") -> StateDict:
    """State dict of the `trunk` of that name from one of torchvision's ResNet, whose classifier is left out.

    The prefix "module." that data-parallel training leaves is removed.
    """
    state = {name.removeprefix("module."): values for name, values in state_dict.items()}
    state = {name: values for name, values in state.items() if not name.startswith("fc.")}
    with sketching():
        expected = create_trunk(trunk).state_dict()
    require_same_names(state, expected)
    for name, values in state.items():
        require_shape(name, values, expected, source="this state dict")
    return state
