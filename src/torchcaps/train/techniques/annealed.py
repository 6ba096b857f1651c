"""Annealed training: routing iterations grow while the network learns (thesis, algorithm 3)."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING

from torch import nn

from torchcaps.core import Plain
from torchcaps.data import Examples
from torchcaps.routing import Iterations, iterations_of, set_iterations

from ..tasks import Evaluation
from .annealing import Annealer, Annealing, Decision
from .api import FinalResults, Technique

if TYPE_CHECKING:
    from ..loop.kept import KeptRun


class AnnealedTraining(Technique):
    """Each number of iterations starts from the best weights of an earlier one; all of them are kept."""

    def __init__(self, settings: Annealing, network: nn.Module) -> None:
        self.settings, self._network = settings, network
        self.annealer = Annealer(settings, tuple(iterations_of(network, settings.layers)))
        self._kept: Iterations = self.annealer.iterations
        self._set(self._kept)

    def after_epoch(self, run: KeptRun, epoch: int, validation: Evaluation) -> None:
        """Algorithm 3, lines 7 to 12: the best weights of each step are one file."""
        decision = self.annealer.observe(validation.loss)
        if decision is Decision.IMPROVED:
            run.save_weights(f"step-{self.annealer.step}", epoch)
        elif decision is Decision.NEXT_STEP:
            self._start_step(run)

    def _start_step(self, run: KeptRun) -> None:
        """Go on from the best weights of an earlier step, which are first tried with the new iterations."""
        session = run.session
        session.fabric.barrier()
        iterations = self.annealer.iterations
        epoch = run.use_weights(f"step-{self.annealer.source}")
        if self.settings.optimizer == "reset":
            session.reset_optimizer()
        self._set(iterations)
        session.step.forget_graph()
        tried = session.evaluate(session.splits.validation)
        if isfinite(tried.loss):  # else learning may mend them; the loop ends a run where it does not
            run.keep_if_best(epoch, tried)
            self.after_epoch(run, epoch, tried)

    def finish(self, run: KeptRun, test: Examples) -> FinalResults:
        """Every step with what its best weights give on the test images."""
        steps = []
        for number, step in enumerate(self.annealer.tried):
            epoch = run.use_weights(f"step-{number}")  # with its iterations
            # the annealer counts evaluations; readers look for the epoch in metrics.jsonl
            steps.append({**asdict(step), "epoch": epoch, **run.session.evaluate(test).named("test")})
        return {"annealing": steps}

    @property
    def is_done(self) -> bool:
        """Whether all numbers of iterations have been tried."""
        return self.annealer.is_done

    def row(self) -> Plain:
        """The iterations of the epoch."""
        return self.header()

    def metrics(self) -> Plain:
        """The iterations that go with the weights in use."""
        return {"iterations": self._kept}

    def header(self) -> Plain:
        """The iterations that the weights were trained with."""
        return {"iterations": self.annealer.iterations}

    def adopt(self, header: Plain) -> None:
        """Route as often as the weights of the file were trained with."""
        self._kept = header["iterations"]
        self._set(self._kept)

    def state(self) -> Plain:
        """The state of the annealer."""
        return self.annealer.state()

    def restore(self, state: Plain) -> None:
        """Go on with the iterations of the checkpoint."""
        self.annealer = self.annealer.restored(state)
        self._set(self.annealer.iterations)

    def _set(self, iterations: Iterations) -> None:
        set_iterations(self._network, iterations, self.settings.layers)
