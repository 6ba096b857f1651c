"""Whether the weights of a model fit in the memory of this machine."""

from __future__ import annotations

import os

from torchcaps.core import UserError

from .recipe import Recipe


def require_memory(recipe: Recipe) -> None:
    """Raise before memory is taken where the model is larger than the machine."""
    try:
        network = recipe.sketch()
    except (RuntimeError, OverflowError) as error:  # sizes that overflow the numbers of PyTorch
        raise UserError(
            "recipe.model: its sizes are too large for any machine; choose smaller ones"
        ) from error
    needed, there = sum(each.numel() * each.itemsize for each in network.parameters()), _memory()
    if there and needed > there:
        raise UserError(
            f"recipe.model needs {needed / 2**30:,.1f} GiB for its weights alone, and this machine has "
            f"{there / 2**30:,.1f} GiB of memory; choose smaller sizes"
        )


def _memory() -> int:
    """Bytes of memory in this machine; 0 where the system does not tell."""
    names = ("SC_PAGE_SIZE", "SC_PHYS_PAGES")
    if not hasattr(os, "sysconf") or any(name not in os.sysconf_names for name in names):
        return 0
    return os.sysconf(names[0]) * os.sysconf(names[1])
