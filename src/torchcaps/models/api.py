"""Models by name: a variant is a name, a class and a frozen config."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_type_hints

import torch
from torch import nn

from torchcaps.core.errors import UserError, unknown_name
from torchcaps.core.fields import convert, whole_numbers
from torchcaps.core.registry import Registry

from .flops import count_flops


@dataclass(frozen=True)
class Variant:
    """A named architecture: the class, its config, and where it comes from."""

    build: type[nn.Module]
    config: Any
    family: str
    paper: str
    task: str


_CHECKED_BY_NETWORKS = {"in_channels", "image_size", "num_classes"}  # which name the layer that fails

MODELS: Registry[Variant] = Registry("model")


def register_variants(
    build: type[nn.Module],
    *,
    family: str,
    paper: str,
    variants: dict[str, Any],
    task: Literal["classification", "segmentation"] = "classification",
) -> None:
    """Register each config in `variants` under its name."""
    for name, config in variants.items():
        MODELS.register(name)(Variant(build, config, family, paper, task))


def create_model(name: str, **overrides: Any) -> nn.Module:
    """Build the model registered as `name`, with single config fields replaced."""
    variant = MODELS[name]
    known = [field.name for field in fields(variant.config)]
    for field in overrides:
        if field not in known:
            raise unknown_name(f"field of model {name!r}", field, known)
    hints = get_type_hints(type(variant.config))
    checked = {key: convert(hints[key], value, f"model.{key}") for key, value in overrides.items()}
    for key in checked.keys() - _CHECKED_BY_NETWORKS:
        _require_size(f"model.{key}", checked[key], getattr(variant.config, key))
    return variant.build(replace(variant.config, **checked))


def _require_size(where: str, value: Any, registered: Any) -> None:
    """Whole numbers are sizes and counts; only where the registered one is 0 does 0 have a meaning."""
    least = min(whole_numbers(registered), default=1)
    smallest = min(whole_numbers(value), default=least)
    if smallest < min(1, least):
        raise UserError(f"{where} must be at least {min(1, least)}, got {value}")


def list_models(pattern: str = "*") -> list[str]:
    """Names of the registered models."""
    return MODELS.names(pattern)


def describe_model(name: str) -> dict[str, Any]:
    """Name, family, parameters, operations, input, classes and paper of a model, allocating no weights."""
    variant = MODELS[name]
    with torch.device("meta"):
        model = variant.build(variant.config)
    config = variant.config
    return {
        "name": name,
        "family": variant.family,
        "task": variant.task,
        "params": sum(parameter.numel() for parameter in model.parameters()),
        "flops": count_flops(model)["total"],
        "input": [config.in_channels, config.image_size, config.image_size],
        "classes": config.num_classes,
        "paper": variant.paper,
    }


def config_as_json(config: Any) -> dict[str, Any]:
    """The config as plain data; a routing given as a function cannot be written down and is an error."""
    values = asdict(config)
    for key, value in values.items():
        if callable(value):
            raise UserError(
                f"{key} of this model is a function and cannot be saved; register it and use its name"
            )
    return values
