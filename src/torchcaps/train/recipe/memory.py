"""Whether the weights of a model fit in the memory of this machine."""

from __future__ import annotations

from torchcaps.core import UserError, machine_memory

from .recipe import Recipe


def require_memory(recipe: Recipe) -> None:
    """Raise before memory is taken where the model is larger than the machine."""
    try:
        network = recipe.sketch()
    except (RuntimeError, OverflowError) as error:  # sizes that overflow the numbers of PyTorch
        raise UserError(
            "recipe.model: its sizes are too large for any machine; choose smaller ones"
        ) from error
    needed, there = sum(each.numel() * each.itemsize for each in network.parameters()), machine_memory()
    if there and needed > there:
        raise UserError(
            f"recipe.model needs {needed / 2**30:,.1f} GiB for its weights alone, and this machine has "
            f"{there / 2**30:,.1f} GiB of memory; choose smaller sizes"
        )
