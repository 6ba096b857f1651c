"""Advice for a device with too little memory for a batch."""

from __future__ import annotations

import torch

from torchcaps.inspection import count_parameters

from .session import Session


def explain_out_of_memory(session: Session, error: torch.OutOfMemoryError) -> str:
    """What was tried, what the device has, and the largest batch of half, a quarter, ... that does fit."""
    device, recipe = session.fabric.device, session.recipe
    shape = "x".join(map(str, session.splits.train.images.shape[1:]))
    parameters = count_parameters(session.network)
    wanted = str(error).partition(". ")[0]
    fits = fitting_batch(session)
    advice = f"batch_size={fits} fits" if fits else "not even one image fits: choose a smaller model"
    return (
        f"{device} ran out of memory with a batch of {recipe.batch_size} images of {shape} and a model of "
        f"{parameters:,} parameters ({wanted}); {advice}"
    )


def fitting_batch(session: Session) -> int:
    """The largest batch found by halving for which a whole backward pass fits; 0 when none does."""
    batch = session.recipe.batch_size // 2
    while batch:
        session.optimizer.zero_grad(set_to_none=True)
        if session.fabric.device.type == "cuda":
            torch.cuda.empty_cache()
        try:
            session.step.backward(torch.arange(batch, device=session.fabric.device))
        except torch.OutOfMemoryError:
            batch //= 2
        else:
            return batch
    return 0
