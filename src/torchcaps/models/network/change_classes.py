"""A trained network for other classes."""

from __future__ import annotations

import copy
from dataclasses import fields, replace
from operator import index
from typing import SupportsIndex, TypeVar

import torch
from torch import nn

from torchcaps.core import UserError, shown
from torchcaps.routing import iterations_of, set_iterations

from .network import Network

Kind = TypeVar("Kind", bound=Network)


def change_classes(model: Kind, num_classes: int) -> Kind:
    """A copy of `model` that tells `num_classes` classes apart, to be trained further.

    Layers of the same shape keep their weights; those that depend on the classes, the last capsules and a
    decoder, begin anew. The copy routes as often as the model, on the same device and in the same mode.

    Examples:
        >>> model = create_model("dr_capsnet_minimal", pretrained=True)
        >>> change_classes(model, 5)(torch.rand(2, 1, 28, 28)).activations.shape
        torch.Size([2, 5])
    """
    if not isinstance(model, nn.Module) or not hasattr(model, "config"):
        got = type(model).__name__
        raise UserError(f"change_classes takes a network from create_model and a number, got a {got} first")
    if not isinstance(num_classes, SupportsIndex):
        raise UserError(f"change_classes takes how many classes there are, as 5, got {shown(num_classes)}")
    if "num_classes" not in {field.name for field in fields(model.config)}:
        raise UserError(f"{type(model).__name__} does not tell classes apart, so it has none to change")
    config = replace(model.config, num_classes=index(num_classes))
    changed = type(model)(config)
    own = changed.state_dict()
    kept = {name: values for name, values in model.state_dict().items() if own[name].shape == values.shape}
    changed.load_state_dict(copy.deepcopy(kept), strict=False)
    set_iterations(changed, iterations_of(model))
    place = next(model.parameters(), torch.empty(0))
    return changed.to(place.device, place.dtype).train(model.training)
