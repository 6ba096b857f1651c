"""The training step: one update of the weights, with nothing that waits for the device."""

from __future__ import annotations

import gc
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer
from torch.utils._pytree import tree_map

from torchcaps.data import Examples

from ..objective import Objective
from ..pipeline import Pipeline
from ..tasks import AnyTask
from ..techniques import Technique

if TYPE_CHECKING:
    from lightning.fabric import Fabric

# Runs of one process take turns in what is not replayed: Fabric notes a backward pass in a global variable,
# autograd has one thread for all of them, and no other kernel may run there while a graph is captured.
_TAKING_TURNS = threading.RLock()
_WARM_UP = 3  # steps before a CUDA graph is captured: kernels are compiled and buffers allocated by then


@dataclass(frozen=True)
class Work:
    """What a step computes: examples of a task, made ready by a pipeline, judged by an objective."""

    task: AnyTask
    examples: Examples
    pipeline: Pipeline
    objective: Objective


class TrainStep:
    """Forward, backward and update on the examples at given indices; `follow` then may average the weights.

    Every process draws the same augmentation for the whole batch and then takes its share, so that two
    processes with half a batch each do what one process does, to rounding. Batch norms are the exception:
    each process has the statistics of its own share.
    """

    def __init__(
        self,
        fabric: Fabric,
        model: nn.Module,
        optimizer: Optimizer,
        *,
        work: Work,
        technique: Technique,
        follow: Callable[[], None],
        clip: float = 0.0,
    ) -> None:
        self.fabric, self.model, self.optimizer = fabric, model, optimizer
        self.work, self.technique, self.follow, self.clip = work, technique, follow, clip
        self.random = torch.Generator(fabric.device)
        self._loss = torch.zeros((), device=fabric.device)
        self._steps = torch.zeros((), device=fabric.device)
        self._first_bad = torch.full((), math.inf, device=fabric.device)

    def start_epoch(self, seed: int) -> None:
        """Forget the last epoch's sums and restart the random draws."""
        self.random.manual_seed(seed)
        for total, value in ((self._loss, 0.0), (self._steps, 0.0), (self._first_bad, math.inf)):
            total.fill_(value)

    def forget_graph(self) -> None:
        """Nothing to forget: every step is computed anew."""

    def __call__(self, indices: Tensor) -> None:
        """Update the weights once."""
        loss = self.backward(indices)
        self.update()
        self.follow()
        bad = torch.where(loss.isfinite(), math.inf, self._steps)
        torch.minimum(self._first_bad, bad, out=self._first_bad)
        self._loss += loss
        self._steps += 1

    def backward(self, indices: Tensor) -> Tensor:
        """Fill the gradients, and return the loss of this process's share of the batch."""
        task, objective = self.work.task, self.work.objective
        batch = self.work.pipeline.for_training(self.work.examples, indices, self.random)
        share = slice(self.fabric.global_rank, None, self.fabric.world_size)
        images, inputs, targets = tree_map(lambda tensor: tensor[share], batch)
        self.optimizer.zero_grad(set_to_none=True)
        output = task.call(self.model, inputs, targets, return_routing=objective.reads_couplings)
        loss = objective(output, targets, task.drawn(images, targets))
        with _TAKING_TURNS:
            self.fabric.backward(loss)
        return loss.detach()

    def update(self) -> None:
        """Move the weights by their gradients, with what the technique does before and after."""
        self.technique.before_update()
        if self.clip:
            clip_grad_norm_(self.model.parameters(), self.clip)  # without a check that waits for the device
        self.optimizer.step()
        self.technique.after_update()

    def mean_loss(self) -> float:
        """Mean loss over this epoch's steps and all processes."""
        mean: Any = self.fabric.all_reduce(self._loss / self._steps.clamp(min=1), reduce_op="mean")
        return float(mean)

    def first_bad_step(self) -> int | None:
        """The first step of this epoch whose loss was not finite in any process: all must end together."""
        first: Any = self.fabric.all_reduce(self._first_bad, reduce_op="min")
        return None if math.isinf(first) else int(first)


class CapturedStep(TrainStep):
    """The same step as a CUDA graph: one launch instead of hundreds. Its first steps run uncaptured."""

    _graph: torch.cuda.CUDAGraph | None = None
    _indices: Tensor | None = None  # where the graph reads them
    _warm = 0  # steps that ran uncaptured

    def __call__(self, indices: Tensor) -> None:
        """Update the weights once."""
        if self._indices is None:
            self._indices = indices.clone()
        self._indices.copy_(indices)
        if self._graph is not None:
            self._graph.replay()
        elif self._warm < _WARM_UP:
            self._run_on_side_stream()
        else:
            self._capture()

    def forget_graph(self) -> None:
        """Capture again: what the step computes has changed."""
        self._graph, self._warm = None, 0

    def _run_on_side_stream(self) -> None:
        assert self._indices is not None
        side = stream_of_thread("side")
        side.wait_stream(torch.cuda.current_stream())
        with _TAKING_TURNS, torch.cuda.stream(side):
            super().__call__(self._indices)
        torch.cuda.current_stream().wait_stream(side)
        self._warm += 1

    def _capture(self) -> None:
        assert self._indices is not None
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.random)
        self.optimizer.zero_grad(set_to_none=True)
        with (
            _TAKING_TURNS,
            _uncollected(),
            torch.cuda.graph(graph, stream=stream_of_thread("side"), capture_error_mode="thread_local"),
        ):
            super().__call__(self._indices)
        self._graph = graph
        graph.replay()


_STREAMS = threading.local()


def stream_of_thread(name: str) -> torch.cuda.Stream:
    """The CUDA stream of that name that belongs to the calling thread.

    PyTorch hands out 32 streams in turn: a new one for each run would soon be another run's.
    """
    if not hasattr(_STREAMS, name):
        setattr(_STREAMS, name, torch.cuda.Stream())  # type: ignore[no-untyped-call]
    stream: torch.cuda.Stream = getattr(_STREAMS, name)
    return stream


@contextmanager
def _uncollected() -> Iterator[None]:
    """Switch garbage collection off: it could free the graph of another run, which a capture forbids."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
