"""Models by name: a variant is a name, a class and a frozen config."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, get_type_hints

from torchcaps.core import Registry, UserError, convert, unknown_name, whole_numbers

from .network import ModelConfig, Network


@dataclass(frozen=True)
class Variant:
    """A named architecture: the class, its config, and where it comes from."""

    build: Callable[[Any], Network]
    config: ModelConfig
    family: str
    paper: str
    task: str  # the name of one in train/tasks, which models do not import


MODELS: Registry[Variant] = Registry("model", definition=lambda variant: variant.build)

_CHECKED_BY_NETWORKS = {"in_channels", "image_size", "num_classes"}  # their errors name the layer that fails
_FOR_TESTS = "_tiny_test"


def register_variants(
    build: Callable[[Any], Network],
    *,
    family: str,
    paper: str,
    variants: Mapping[str, ModelConfig],
    task: str = "classification",
) -> None:
    """Register each config in `variants` under its name."""
    for name, config in variants.items():
        MODELS.register(name)(Variant(build, config, family, paper, task))


def create_model(name: str, **overrides: object) -> Network:
    """Build a registered model with random initial weights.

    Args:
        name: A name from `list_models()`.
        **overrides: Fields of the model's config that differ from the registered ones, such as `num_classes`,
            `in_channels`, `image_size` (one number, or height and width), `routing` or `decoder`. An unknown
            field is an error that names near ones.

    Returns:
        A `torch.nn.Module` in training mode. It has the resolved `config`, `image_shape` (channels, height,
        width) and `decoder`, which is None for a model without one.

    Examples:
        >>> model = create_model("dr_capsnet_small", num_classes=5, image_size=(44, 60))
        >>> model(torch.rand(2, 1, 44, 60)).activations.shape
        torch.Size([2, 5])
    """
    variant = MODELS[name]
    _require_known(name, variant.config, overrides)
    hints = get_type_hints(type(variant.config))
    checked = {key: convert(hints[key], value, f"model.{key}") for key, value in overrides.items()}
    for key in checked.keys() - _CHECKED_BY_NETWORKS:
        _require_size(f"model.{key}", checked[key], getattr(variant.config, key))
    return variant.build(replace(variant.config, **checked))


def build_model(spec: Mapping[str, Any]) -> Network:
    """Build the model that a recipe describes: its `name` and the config fields that it replaces."""
    if "name" not in spec:
        raise UserError("a model needs a 'name'; its other keys replace fields of that model")
    return create_model(**spec)


def _require_known(name: str, config: ModelConfig, overrides: Mapping[str, object]) -> None:
    known = [field.name for field in fields(config)]
    if "pretrained" in overrides and "pretrained" not in known:
        raise UserError(
            "this function builds models with random weights; torchcaps.create_model(NAME, pretrained=True) "
            "takes pretrained ones, and torchcaps weights list names them"
        )
    for field in overrides:
        if field not in known:
            raise unknown_name(f"field of model {name!r}", field, known)


def _require_size(where: str, value: object, registered: object) -> None:
    """Refuse whole numbers below 1, and below 0 where the registered value is 0."""
    least = min(whole_numbers(registered), default=1)
    smallest = min(whole_numbers(value), default=least)
    if smallest < min(1, least):
        raise UserError(f"{where} must be at least {min(1, least)}, got {value}")


def list_models(pattern: str = "*") -> list[str]:
    """Names of the registered models that match a shell pattern, in alphabetical order.

    The tiny variants that tests use are listed only where the pattern names them, as "*_tiny_test" does.

    Examples:
        >>> list_models("deepcaps_28*")
        ['deepcaps_28', 'deepcaps_28_thesis']
    """
    names = MODELS.names(pattern)
    if pattern.endswith(_FOR_TESTS):
        return names
    return [name for name in names if not name.endswith(_FOR_TESTS)]


def config_as_json(config: ModelConfig) -> dict[str, Any]:
    """The config as plain data; a routing given as a function cannot be written down and is an error."""
    values = asdict(config)
    for key, value in values.items():
        if callable(value):
            raise UserError(
                f"{key} of this model is a function and cannot be saved; register it and use its name"
            )
    return values
