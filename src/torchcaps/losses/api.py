"""Losses by name: typed settings and a function of what a network returned and what it should have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeAlias

from jaxtyping import Float
from torch import Tensor

from torchcaps.core import OutputT, Registry, TargetsT


class Loss(ABC, Generic[OutputT, TargetsT]):
    """A loss of one task; a frozen dataclass whose fields are its settings in a recipe."""

    task: ClassVar[str]
    compares_images: ClassVar[bool] = False  # with others of their batch; else it is a mean over images

    @abstractmethod
    def __call__(self, output: OutputT, targets: TargetsT, /, **scheduled: Tensor) -> Float[Tensor, ""]:
        """The mean loss of a batch.

        Args:
            output: What a network of this task returns.
            targets: What examples of this task have for targets.
            scheduled: What `schedule` names, as tensors that change in place from epoch to epoch.
        """

    def schedule(self, epoch: int | float) -> Mapping[str, float]:
        """What changes with the epochs, by name; `math.inf` asks for the final values."""
        del epoch
        return {}


AnyLoss: TypeAlias = Loss[Any, Any]  # of whichever task
LOSSES: Registry[type[AnyLoss]] = Registry("loss", Loss)


def list_losses(task: str) -> list[str]:
    """Names of the losses of a task."""
    return [name for name in LOSSES.names() if LOSSES[name].task == task]
