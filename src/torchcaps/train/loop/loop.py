"""The training loop: epochs, validation, early stopping, and the test at the end."""

from __future__ import annotations

import math
import time
from contextlib import nullcontext
from pathlib import Path
from typing import cast

import torch

from torchcaps.core import UserError
from torchcaps.data import FOLDER_PREFIX
from torchcaps.inspection import count_parameters, watch_health
from torchcaps.storage import write_json

from ..machine import Machine, launch, settled
from ..recipe import Recipe, recipe_as_json, require_memory_to_train
from ..run import (
    TrainResult,
    check_folder,
    check_outside_classes,
    health_inputs,
    held_alone,
    is_finished,
    provenance,
    read_result,
    removed_if_refused,
)
from ..tasks import Evaluation
from ..techniques import FinalResults
from .divergence import broken_step, broken_validation
from .kept import CHECKPOINT, KeptRun
from .out_of_memory import explain_out_of_memory
from .session import Session
from .warm_start import FindStart, adopt_widths
from .watch import Silent, StoppedError, Watcher


def train(
    recipe: Recipe,
    out: Path | str,
    machine: Machine | None = None,
    *,
    resume: bool = False,
    watcher: Watcher | None = None,
    find_start: FindStart = Path,
) -> TrainResult:
    """Train as `recipe` says and leave the run in folder `out`; return the content of its result.json.

    The weights kept are those of the best epoch on the validation images; of the last epoch where the run
    prunes, for it is the sparsest. A run that was killed, at any moment, continues with `resume=True` and
    ends as if it had not been; so does a finished one when the recipe now asks for more epochs. What
    `recipe.start_from` names is asked of `find_start`.
    """
    if not isinstance(recipe, Recipe):
        raise UserError(f"train takes a Recipe, got {type(recipe).__name__}; load_recipe(NAME) gives one")
    out, machine = Path(out), settled(machine or Machine())
    recipe = adopt_widths(recipe, out, find_start)
    _check_shared(recipe, machine)
    check_folder(recipe, out, resume=resume)
    if is_finished(recipe, out):
        metrics = (f"metrics.test_{each.name}" for each in recipe.task.metrics)
        return cast(TrainResult, read_result(out, "seconds", "metrics.best_epoch", *metrics))
    check_outside_classes(recipe, out, machine.data_dir)
    require_memory_to_train(recipe, machine)
    fabric = launch(machine)
    with held_alone(out) if fabric.is_global_zero else nullcontext():
        if fabric.is_global_zero:
            check_folder(recipe, out, resume=resume)  # another process may have started in it meanwhile
        is_continued = (out / CHECKPOINT).is_file()
        session = Session(fabric, recipe, machine.data_dir, is_continued=is_continued, find_start=find_start)
        if recipe.data.name.startswith(FOLDER_PREFIX):  # an unreadable test image is reported before training
            session.source.test(torch.device("cpu"))
        run = KeptRun(session, out, machine.precision)
        loop = _Loop(run, machine, watcher if watcher and fabric.is_global_zero else Silent())
        with removed_if_refused(out) if fabric.is_global_zero else nullcontext():
            run.restore()
            loop.train()
        result = loop.test()
        fabric.barrier()
    return result


def _check_shared(recipe: Recipe, machine: Machine) -> None:
    """Raise where a loss would compare an image with those of its process alone."""
    compares = recipe.loss.task_loss.compares_images or recipe.loss.coupling_entropy > 0
    if compares and machine.devices > 1:
        name = recipe.loss.name if recipe.loss.task_loss.compares_images else "coupling_entropy"
        raise UserError(
            f"recipe.loss: {name} compares the images of a batch, which {machine.devices} processes would "
            "share; train with one device"
        )


class _Loop:
    """Trains a run epoch by epoch, and tests it."""

    def __init__(self, run: KeptRun, machine: Machine, watcher: Watcher) -> None:
        self.run, self.session, self.technique = run, run.session, run.technique
        self.machine, self.watcher = machine, watcher

    def train(self) -> None:
        """Train and validate until the epochs are over or patience is lost."""
        session, run = self.session, self.run
        self.watcher.run_started(
            {
                "parameters": count_parameters(session.network),
                "images": len(session.splits.train),
                "epochs": session.recipe.epochs,
                "metric": session.task.leading_metric,
            }
        )
        while not run.is_over:
            if session.fabric.broadcast(self.watcher.wants_to_stop):  # all processes stop together
                if run.progress.next_epoch > 0:
                    run.save_checkpoint()
                raise StoppedError
            started = time.perf_counter()
            self._train_epoch(run.progress.next_epoch)
            validation = session.evaluate(session.splits.validation)
            if not math.isfinite(validation.loss):
                raise broken_validation(run)
            validation = self.technique.after_validation(run, validation)
            self._close_epoch(validation, time.perf_counter() - started)

    def _train_epoch(self, epoch: int) -> None:
        session = self.session
        self.watcher.epoch_started(epoch, session.steps_per_epoch)
        checks_each_step = session.fabric.device.type == "cpu"  # on a GPU the host would wait for the device
        try:
            for indices in session.epoch(epoch):
                session.step(indices)
                session.advance()
                self.watcher.step_done(len(indices))
                if checks_each_step and session.step.first_bad_step() is not None:
                    break
        except torch.OutOfMemoryError as error:
            raise UserError(explain_out_of_memory(session, error)) from error
        bad = session.step.first_bad_step()
        if bad is not None:
            raise broken_step(self.run, self.machine.data_dir, epoch, bad)

    def _close_epoch(self, validation: Evaluation, seconds: float) -> None:
        session = self.session
        self.run.require_folder()
        some = health_inputs(session.splits.validation, session.pipeline)
        noticed = watch_health(session.weights.network, some)
        row = {
            "epoch": self.run.progress.next_epoch,
            "train_loss": session.step.mean_loss(),
            **validation.named("val"),
            "learning_rate": session.learning_rate,
            "seconds": round(seconds, 4),
            "images_per_second": round(session.steps_per_epoch * session.recipe.batch_size / seconds, 1),
            **self.technique.row(),
            **noticed,
        }
        if findings := [*self.technique.findings(), *noticed.get("findings", [])]:
            row["findings"] = findings
        self.run.keep_epoch(row, validation)
        self.watcher.epoch_done(row)

    def test(self) -> TrainResult:
        """Test the kept weights and write result.json."""
        session, run = self.session, self.run
        run.require_folder()
        session.fabric.barrier()
        images = session.source.test(session.fabric.device)
        more = self.technique.finish(run, images)
        run.use_weights("weights")
        test = session.evaluate(images, on_images=lambda count: self.watcher.testing(count, len(images)))
        result = self._result(test, more)
        run.require_folder()
        if session.fabric.is_global_zero:
            write_json(run.out / "result.json", result)
        return result

    def _result(self, test: Evaluation, more: FinalResults) -> TrainResult:
        session, run = self.session, self.run
        return {
            "recipe": recipe_as_json(session.recipe),
            "metrics": {
                **test.named("test"),
                **run.kept_metrics(),
                **self.technique.metrics(),
                "epochs": run.progress.next_epoch,
            },
            **more,
            "parameters": count_parameters(session.network),
            "seed": session.recipe.seed,
            "seconds": round(run.progress.seconds, 3),
            "precision": self.machine.precision,
            "devices": session.fabric.world_size,
            **provenance(session.fabric.device),
            **run.whereabouts(),
        }
