"""A run that starts from the weights of another."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from torchcaps.core import Plain, UserError, sketching
from torchcaps.models import Network
from torchcaps.storage import load_weights, read_mapping, wrong_kind

from ..recipe import Recipe

FindStart = Callable[[str], Path]  # the run folder or file that `recipe.start_from` names


def adopt_widths(recipe: Recipe, out: Path, find_start: FindStart = Path) -> Recipe:
    """The recipe with the trunk widths of the run that it starts from, unless it has its own.

    Where that run is gone, those that the run in `out` was started with.
    """
    if not recipe.start_from or "trunk_widths" in recipe.model:
        return recipe
    places = (folder / "recipe.json" for folder in (find_start(recipe.start_from), out))
    before = next((path for path in places if path.is_file()), None)
    if before is None:
        return recipe
    model = read_mapping(before).get("model")
    widths = model.get("trunk_widths") if isinstance(model, dict) else None
    return recipe if widths is None else replace(recipe, model={**recipe.model, "trunk_widths": widths})


def start_from(network: Network, source: Path) -> None:
    """Load the layers that `network` shares with a run folder or a file of trunk weights; others stay.

    Layers are shared by name, so a capsule network takes the trunk of a classifier and keeps its own head.
    Where the source tells another number of classes apart, the layers that depend on it begin anew. Any other
    shared layer of another shape is an error: the widths of a pruned trunk are part of the recipe.
    """
    path = source / "weights.safetensors" if source.is_dir() else source
    state, info = load_weights(path)
    if "trunk" in info:  # written by `torchcaps import-weights`
        state = {f"trunk.{name}": values for name, values in state.items()}
    own, anew = network.state_dict(), _layers_of_classes(network, info)
    shared = {name: values for name, values in state.items() if name in own and name not in anew}
    if not shared:
        raise UserError(f"recipe.start_from: {path} has no layer in common with this model")
    for name, values in shared.items():
        if values.shape != own[name].shape:
            raise UserError(
                f"recipe.start_from: {name} is {_shape(values.shape)} in {path} and "
                f"{_shape(own[name].shape)} in this model; give the model {_remedy(own)} of the run's recipe)"
            )
    if problem := wrong_kind(shared, own):
        raise UserError(f"recipe.start_from: {path} does not fit this model: {problem}; restore it")
    network.load_state_dict(shared, strict=False)


def _layers_of_classes(network: Network, info: Plain) -> set[str]:
    """The layers that have another shape with as many classes as a file of weights says; mostly none."""
    config = info.get("config")
    classes = config.get("num_classes") if isinstance(config, dict) else None
    if not isinstance(classes, int) or getattr(network.config, "num_classes", classes) == classes:
        return set()
    with sketching():
        other = type(network)(replace(network.config, num_classes=classes)).state_dict()
    return {name for name, values in network.state_dict().items() if other[name].shape != values.shape}


def _remedy(names: Iterable[str]) -> str:
    has_trunk = any(name.startswith("trunk.") for name in names)
    return "the same widths (model.trunk_widths" if has_trunk else "the same sizes (what stands under model:"


def _shape(sizes: tuple[int, ...]) -> str:
    return "x".join(map(str, sizes)) or "one number"
