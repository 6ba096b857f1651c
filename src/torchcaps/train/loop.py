"""The training loop: epochs, validation, early stopping, checkpoints and resumption."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from torchcaps.core.errors import UserError
from torchcaps.data import LabelledImages
from torchcaps.data.api import FOLDER_PREFIX
from torchcaps.inspection import count_parameters, watch_health
from torchcaps.models import config_as_json
from torchcaps.storage import load_weights, read_json, save_weights, write_json, write_text

from .annealing import Annealer, Iterations, Verdict, start_annealer
from .checkpoint import load_checkpoint, save_checkpoint
from .data_card import card_of
from .diagnose import find_non_finite
from .evaluate import Evaluation, evaluate
from .folder import check_folder, held_alone, is_finished
from .health import health_inputs
from .memory import explain_out_of_memory
from .pipeline import load_test
from .pruning import Pruner
from .recipe import Recipe, recipe_as_json
from .results import provenance
from .run import write_recipe
from .session import Machine, Session, launch
from .start import adopt_widths
from .watch import Silent, Watcher

_SECONDS_BETWEEN_CHECKPOINTS = 15.0  # what a killed run repeats at most, besides the epoch it was in
_EVALUATION_BATCH = {"cuda": 2048}


class DivergedError(UserError):
    """The loss stopped being a number."""


@dataclass
class Progress:
    """How far a run has come."""

    next_epoch: int = 0
    best_loss: float = float("inf")
    best_accuracy: float = 0.0
    best_epoch: int = -1
    best_iterations: Iterations = 0  # of the annealed routings; 0 where none is
    seconds: float = 0.0


def train(
    recipe: Recipe,
    out: Path,
    machine: Machine | None = None,
    *,
    resume: bool = False,
    watcher: Watcher | None = None,
) -> dict[str, Any]:
    """Train as `recipe` says and leave the run in folder `out`; the content of its result.json.

    The weights kept are those of the epoch with the lowest validation loss; of the last epoch where the run
    prunes, for it is the sparsest. A run that was killed, at any moment, continues with `resume=True` and
    ends as if it had not been; so does a finished one when the recipe now asks for more epochs.
    """
    machine, recipe = machine or Machine(), adopt_widths(recipe)
    check_folder(recipe, out, resume=resume)
    if is_finished(recipe, out):
        return read_json(out / "result.json")
    fabric = launch(machine)
    with held_alone(out) if fabric.is_global_zero else nullcontext():
        if fabric.is_global_zero:
            check_folder(recipe, out, resume=resume)  # another may have come since
        session = Session(fabric, recipe, machine.data_dir)
        if recipe.data.name.startswith(FOLDER_PREFIX):  # an image that cannot be read is told now, not after
            load_test(recipe.data, machine.data_dir, torch.device("cpu"))
        run = _Run(session, out, watcher if watcher and fabric.is_global_zero else Silent())
        run.restore()
        run.loop(machine)
        result = run.finish(machine)
        fabric.barrier()
    return result


class _Run:
    """A session together with its folder."""

    def __init__(self, session: Session, out: Path, watcher: Watcher) -> None:
        self.session, self.out, self.watcher = session, out, watcher
        self.progress = Progress()
        self.rows: list[dict[str, Any]] = []
        settings = session.recipe.annealing
        self.annealer = None if settings is None else start_annealer(settings, session.network)
        self._follow_annealer()
        pruning = session.recipe.pruning
        self.pruner = None if pruning is None else Pruner(session, pruning, self._evaluate)
        self._saved_at = time.monotonic()

    def restore(self) -> None:
        """Continue from the last checkpoint, or write down what is about to run."""
        checkpoint = self.out / "last.ckpt"
        if checkpoint.is_file():
            state = load_checkpoint(checkpoint, self.session.fabric.device)
            self.session.network.load_state_dict(state["model"])
            self.session.optimizer.load_state_dict(state["optimizer"])
            self.progress = Progress(**state["progress"])
            self.rows = state["rows"]
            if self.annealer is not None:
                self.annealer = replace(self.annealer, **state["annealing"])
                self._follow_annealer()
            if self.pruner is not None:
                self.pruner.restore(state["pruning"])
        if self.session.fabric.is_global_zero:
            (self.out / "result.json").unlink(missing_ok=True)  # there where a finished run gets more epochs
            write_recipe(self.out, self.session.recipe, card_of(self.session.splits.info))
        self._write_rows()

    def loop(self, machine: Machine) -> None:
        """Train and validate until the epochs are over or patience is lost."""
        recipe, progress = self.session.recipe, self.progress
        parameters = count_parameters(self.session.network)
        self.watcher.run_started(
            {"parameters": parameters, "images": len(self.session.splits.train), "epochs": recipe.epochs}
        )
        while not self._is_over():
            started = time.perf_counter()
            epoch = progress.next_epoch
            self._train_epoch(epoch, machine)
            validation = self._evaluate(self.session.splits.validation)
            if not math.isfinite(validation.loss):
                raise DivergedError(f"the validation loss is not finite after epoch {epoch}; {self._kept()}")
            if self.pruner is not None:
                validation = self.pruner.after_epoch(validation)
            seconds = time.perf_counter() - started
            self._close_epoch(epoch, validation, seconds)

    def _is_over(self) -> bool:
        recipe, progress = self.session.recipe, self.progress
        if self.annealer is not None and self.annealer.is_done:
            return True
        lost_patience = 0 < recipe.patience <= progress.next_epoch - 1 - progress.best_epoch
        return progress.next_epoch >= recipe.epochs or lost_patience

    def _train_epoch(self, epoch: int, machine: Machine) -> None:
        session = self.session
        self.watcher.epoch_started(epoch, session.steps_per_epoch)
        checks_each_step = session.fabric.device.type == "cpu"  # elsewhere reading it would stop the device
        try:
            for indices in session.start_epoch(epoch):
                session.step(indices)
                self.watcher.step_done(len(indices))
                if checks_each_step and session.step.first_bad_step() is not None:
                    break
        except torch.OutOfMemoryError as error:
            raise UserError(explain_out_of_memory(session, error)) from error
        bad = session.step.first_bad_step()
        if bad is not None:
            raise DivergedError(self._explain(epoch, bad, machine))

    def _explain(self, epoch: int, step: int, machine: Machine) -> str:
        """Replay from the last checkpoint, uncaptured, to find where the first broken value came from."""
        kept = self.out / "last.ckpt"
        twin = Session(self.session.fabric, self.session.recipe, machine.data_dir, capture=False)
        replay = _Run(twin, self.out, Silent())
        if kept.is_file():
            replay.restore()
        place = find_non_finite(twin.network, replay.repeat(epoch, step))
        where = f"first non-finite value: {place}" if place else "replaying the steps did not reproduce it"
        return f"the loss is not finite in step {step} of epoch {epoch}; {where}; {self._kept()}"

    def _kept(self) -> str:
        kept = self.out / "last.ckpt"
        return f"last good checkpoint: {kept}" if kept.is_file() else "no checkpoint was written before it"

    def repeat(self, last_epoch: int, last_step: int) -> Iterator[None]:
        """The steps from here to the given one, yielding between backward and update."""
        for epoch in range(self.progress.next_epoch, last_epoch + 1):
            for number, indices in enumerate(self.session.start_epoch(epoch)):
                self.session.step.backward(indices)
                yield
                self.session.step.update()
                if (epoch, number) == (last_epoch, last_step):
                    return

    def _evaluate(self, data: Any) -> Evaluation:
        session = self.session
        batch = _EVALUATION_BATCH.get(session.fabric.device.type, 512)
        return evaluate(session.model, data, session.pipeline, session.objective, batch)

    def _watch_health(self) -> dict[str, Any]:
        """The health of the capsules on the same few validation images after each epoch."""
        inputs = health_inputs(self.session.splits.validation, self.session.pipeline)
        return watch_health(self.session.network, inputs)

    def _close_epoch(self, epoch: int, validation: Evaluation, seconds: float) -> None:
        session, progress = self.session, self.progress
        noticed = self._watch_health()
        findings = {"findings": noticed.pop("findings")} if "findings" in noticed else {}
        row = {
            "epoch": epoch,
            "train_loss": session.step.mean_loss(),
            "val_loss": validation.loss,
            "val_accuracy": validation.accuracy,
            "learning_rate": float(session.optimizer.param_groups[0]["lr"]),
            "seconds": round(seconds, 4),
            "images_per_second": round(session.steps_per_epoch * session.recipe.batch_size / seconds, 1),
            **({} if self.annealer is None else {"iterations": self.annealer.iterations}),
            **({} if self.pruner is None else self.pruner.row()),
            **noticed,
        }
        self.rows.append(row)
        progress.next_epoch = epoch + 1
        progress.seconds += seconds
        self._keep_if_best(epoch, validation)
        if epoch + 1 in session.recipe.keep_epochs:
            self._save_weights(f"epoch-{epoch + 1}", epoch)
        if self.annealer is not None:
            self._anneal(self.annealer, epoch, validation.loss)
        self._save_checkpoint()
        self._write_rows()
        self.watcher.epoch_done(row | findings)

    def _keep_if_best(self, epoch: int, validation: Evaluation) -> None:
        progress = self.progress
        if validation.loss < progress.best_loss:
            progress.best_loss, progress.best_accuracy = validation.loss, validation.accuracy
            progress.best_epoch = epoch
            progress.best_iterations = 0 if self.annealer is None else self.annealer.iterations
            if self.pruner is None:
                self._save_weights("weights", epoch)

    def _anneal(self, annealer: Annealer, epoch: int, loss: float) -> None:
        """Algorithm 3, lines 7 to 12: the best weights of each step are one file."""
        verdict = annealer.observe(loss)
        if verdict is Verdict.IMPROVED:
            self._save_weights(f"step-{annealer.step}", epoch)
        elif verdict is Verdict.NEXT_STEP:
            self._start_step(annealer)

    def _start_step(self, annealer: Annealer) -> None:
        """Go on from the best weights of an earlier step, which are first tried with the new iterations."""
        session = self.session
        session.fabric.barrier()
        state, info = load_weights(self.out / f"step-{annealer.source}.safetensors")
        session.network.load_state_dict(state)
        if annealer.settings.optimizer == "reset":
            session.reset_optimizer()
        self._follow_annealer()
        tried = self._evaluate(session.splits.validation)
        self._keep_if_best(info["epoch"], tried)
        self._anneal(annealer, info["epoch"], tried.loss)

    def _follow_annealer(self) -> None:
        if self.annealer is not None:
            self.session.set_iterations(self.annealer.iterations, self.annealer.settings.layers)

    def _save_weights(self, name: str, epoch: int) -> None:
        if self.session.fabric.is_global_zero:
            info = {
                "model": self.session.recipe.model,
                "config": config_as_json(self.session.network.config),
                "epoch": epoch,
                **({} if self.annealer is None else {"iterations": self.annealer.iterations}),
            }
            save_weights(self.out / f"{name}.safetensors", self.session.network.state_dict(), info)

    def _save_checkpoint(self) -> None:
        is_due = time.monotonic() - self._saved_at >= _SECONDS_BETWEEN_CHECKPOINTS
        is_wanted = is_due or self._is_over() or self.progress.next_epoch == 1
        if not self.session.fabric.is_global_zero or not is_wanted:
            return
        state = {
            "model": self.session.network.state_dict(),
            "optimizer": self.session.optimizer.state_dict(),
            "progress": asdict(self.progress),
            "rows": self.rows,
            **({} if self.annealer is None else {"annealing": self.annealer.state()}),
            **({} if self.pruner is None else {"pruning": self.pruner.state()}),
        }
        if self.pruner is not None:
            self._save_weights("weights", self.progress.next_epoch - 1)
        save_checkpoint(self.out / "last.ckpt", state)
        self._saved_at = time.monotonic()

    def _write_rows(self) -> None:
        if self.session.fabric.is_global_zero:
            text = "".join(json.dumps(row) + "\n" for row in self.rows)
            write_text(self.out / "metrics.jsonl", text)

    def finish(self, machine: Machine) -> dict[str, Any]:
        """Test the kept weights and write result.json."""
        session, progress = self.session, self.progress
        session.fabric.barrier()
        images = load_test(session.recipe.data, machine.data_dir, session.fabric.device)
        steps = {} if self.annealer is None else {"annealing": self._test_steps(self.annealer, images)}
        test = self._test("weights", images, progress.best_iterations)
        result = {
            "recipe": recipe_as_json(session.recipe),
            "metrics": {
                "test_accuracy": test.accuracy,
                "test_loss": test.loss,
                **self._kept_metrics(),
                "epochs": progress.next_epoch,
                **({} if self.annealer is None else {"iterations": progress.best_iterations}),
            },
            **steps,
            "parameters": count_parameters(session.network),
            "seed": session.recipe.seed,
            "seconds": round(progress.seconds, 3),
            "precision": machine.precision,
            "devices": session.fabric.world_size,
            **provenance(session.fabric.device),
        }
        if session.fabric.is_global_zero:
            write_json(self.out / "result.json", result)
        return result

    def _test(self, name: str, images: LabelledImages, iterations: Iterations) -> Evaluation:
        """What kept weights give on the test images."""
        state, _ = load_weights(self.out / f"{name}.safetensors")
        self.session.network.load_state_dict(state)
        if self.annealer is not None:
            self.session.set_iterations(iterations, self.annealer.settings.layers)
        return self._evaluate(images)

    def _test_steps(self, annealer: Annealer, images: LabelledImages) -> list[dict[str, Any]]:
        """Every annealing step with what its best weights give on the test images."""
        steps = []
        for number, step in enumerate(annealer.tried):
            test = self._test(f"step-{number}", images, step["iterations"])
            steps.append({**step, "test_loss": test.loss, "test_accuracy": test.accuracy})
        return steps

    def _kept_metrics(self) -> dict[str, Any]:
        progress = self.progress
        if self.pruner is None:
            return {
                "val_accuracy": progress.best_accuracy,
                "val_loss": progress.best_loss,
                "best_epoch": progress.best_epoch,
            }
        last = self.rows[-1]
        kept = {"val_accuracy": last["val_accuracy"], "val_loss": last["val_loss"]}
        return {**kept, "best_epoch": last["epoch"], **self.pruner.metrics()}
