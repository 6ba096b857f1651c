"""A run that starts from the weights of another."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from torchcaps.core.errors import UserError

from .checkpoint import load_weights


def start_from(network: nn.Module, source: Path) -> None:
    """Load the layers that `network` shares with a run folder or a file of trunk weights; others stay.

    Layers are shared by name, so a capsule network takes the trunk of a classifier and keeps its own head. A
    shared layer of another shape is an error: the widths of a pruned trunk are part of the recipe.
    """
    path = source / "weights.safetensors" if source.is_dir() else source
    state, info = load_weights(path)
    if "trunk" in info:  # written by `torchcaps import-weights`
        state = {f"trunk.{name}": values for name, values in state.items()}
    own = network.state_dict()
    shared = {name: values for name, values in state.items() if name in own}
    if not shared:
        raise UserError(f"recipe.start_from: {path} has no layer in common with this model")
    for name, values in shared.items():
        if values.shape != own[name].shape:
            raise UserError(
                f"recipe.start_from: {name} is {_shape(values.shape)} in {path} and "
                f"{_shape(own[name].shape)} in this model; give the model the same widths "
                "(model.trunk_widths of the run's recipe)"
            )
    network.load_state_dict(shared, strict=False)


def _shape(sizes: tuple[int, ...]) -> str:
    return "x".join(map(str, sizes)) or "one number"
