"""The training loop: epochs, validation, early stopping, checkpoints and resumption."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import torch

from torchcaps.core import Plain
from torchcaps.core.errors import UserError
from torchcaps.data import FOLDER_PREFIX, Examples
from torchcaps.inspection import count_parameters, watch_health
from torchcaps.models import config_as_json
from torchcaps.storage import load_weights, save_weights, write_json, write_text

from .checkpoint import described_damage, load_checkpoint, save_checkpoint
from .data_card import card_of
from .diagnose import find_non_finite
from .evaluate import evaluate
from .folder import check_folder, held_alone, is_finished, read_result, removed_if_refused
from .health import health_inputs
from .machine import Machine, launch, settled
from .out_of_memory import explain_out_of_memory
from .recipe import Recipe, recipe_as_json
from .results import provenance
from .run import read_data_card, write_recipe
from .session import Session
from .tasks import Evaluation
from .warm_start import adopt_widths
from .watch import Silent, StoppedError, Watcher

_SECONDS_BETWEEN_CHECKPOINTS = 15.0  # what a killed run repeats at most, besides the epoch it was in


class DivergedError(UserError):
    """The loss stopped being a number."""


@dataclass
class Progress:
    """How far a run has come, and its best epoch so far."""

    next_epoch: int = 0
    best: float | None = None  # of the metric that the recipe selects by
    best_epoch: int = -1
    best_metrics: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    @classmethod
    def restored(cls, state: Plain) -> Progress:
        """From a checkpoint; before 0.1.0 it held the loss and the accuracy alone."""
        if "best_loss" in state:
            best = {"val_loss": state["best_loss"], "val_accuracy": state["best_accuracy"]}
            state = {**state, "best": state["best_loss"], "best_metrics": best}
        return cls(**{each.name: state[each.name] for each in fields(cls)})


def train(
    recipe: Recipe,
    out: Path | str,
    machine: Machine | None = None,
    *,
    resume: bool = False,
    watcher: Watcher | None = None,
) -> Plain:
    """Train as `recipe` says and leave the run in folder `out`; the content of its result.json.

    The weights kept are those of the best epoch on the validation images; of the last epoch where the run
    prunes, for it is the sparsest. A run that was killed, at any moment, continues with `resume=True` and
    ends as if it had not been; so does a finished one when the recipe now asks for more epochs.
    """
    out, machine, recipe = Path(out), settled(machine or Machine()), adopt_widths(recipe)
    check_folder(recipe, out, resume=resume)
    if is_finished(recipe, out):
        metrics = (f"metrics.test_{each.name}" for each in recipe.task.metrics)
        return read_result(out, "seconds", "metrics.best_epoch", *metrics)
    fabric = launch(machine)
    with held_alone(out) if fabric.is_global_zero else nullcontext():
        if fabric.is_global_zero:
            check_folder(recipe, out, resume=resume)  # another may have come since
        session = Session(fabric, recipe, machine.data_dir)
        if recipe.data.name.startswith(FOLDER_PREFIX):  # an unreadable test image is reported before training
            session.source.test(torch.device("cpu"))
        run = _Run(session, out, machine, watcher if watcher and fabric.is_global_zero else Silent())
        with removed_if_refused(out) if fabric.is_global_zero else nullcontext():
            run.restore()
            run.loop()
        result = run.finish()
        fabric.barrier()
    return result


class _Run:
    """A session together with its folder."""

    def __init__(self, session: Session, out: Path, machine: Machine, watcher: Watcher) -> None:
        self.session, self.out, self.machine, self.watcher = session, out, machine, watcher
        self.technique = session.technique
        self.selects_by = session.task.metric(session.recipe.select_by)
        self.progress = Progress()
        self.rows: list[Plain] = []
        self._saved_at = time.monotonic()

    def restore(self) -> None:
        """Continue from the last checkpoint, or write down what is about to run."""
        session, checkpoint = self.session, self.out / "last.ckpt"
        if checkpoint.is_file():
            self._check_classes()
            state = load_checkpoint(checkpoint, session.fabric.device)
            self._check_precision(state)
            with described_damage(checkpoint):
                session.restore(state)
                self.progress, self.rows = Progress.restored(state["progress"]), list(state["rows"])
        if session.fabric.is_global_zero:
            (self.out / "result.json").unlink(missing_ok=True)  # there where a finished run gets more epochs
            write_recipe(self.out, session.recipe, card_of(session.splits.info))
        self._write_rows()

    def _check_precision(self, state: Plain) -> None:
        before, now = state.get("precision", self.machine.precision), self.machine.precision
        if before != now:
            raise UserError(
                f"{self.out} was trained in precision {before}, not {now}; continue it with "
                f"--precision {before}, or choose another --out"
            )

    def _check_classes(self) -> None:
        before, now = read_data_card(self.out), self.session.splits.info.classes
        if before is not None and before.classes != now:
            raise UserError(
                f"{self.out} was trained on the classes {', '.join(before.classes)}; the dataset now has "
                f"{', '.join(now)}: restore the class folders, or choose another --out"
            )

    def loop(self) -> None:
        """Train and validate until the epochs are over or patience is lost."""
        session, progress = self.session, self.progress
        self.watcher.run_started(
            {
                "parameters": count_parameters(session.network),
                "images": len(session.splits.train),
                "epochs": session.recipe.epochs,
                "metric": session.task.leading_metric,
            }
        )
        while not self._is_over():
            if session.fabric.broadcast(self.watcher.wants_to_stop):  # all processes stop together
                self._save_checkpoint(is_due=progress.next_epoch > 0)
                raise StoppedError
            started = time.perf_counter()
            self._train_epoch(progress.next_epoch)
            validation = self.evaluate(session.splits.validation)
            if not math.isfinite(validation.loss):
                raise DivergedError(
                    f"the validation loss is not finite after epoch {progress.next_epoch + 1}; {self._kept()}"
                )
            validation = self.technique.after_validation(self, validation)
            self._close_epoch(progress.next_epoch, validation, time.perf_counter() - started)

    def _is_over(self) -> bool:
        recipe, progress = self.session.recipe, self.progress
        lost_patience = 0 < recipe.patience <= progress.next_epoch - 1 - progress.best_epoch
        return self.technique.is_done or progress.next_epoch >= recipe.epochs or lost_patience

    def _train_epoch(self, epoch: int) -> None:
        session = self.session
        self.watcher.epoch_started(epoch, session.steps_per_epoch)
        checks_each_step = session.fabric.device.type == "cpu"  # elsewhere reading it would stop the device
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
            raise DivergedError(self._explain(epoch, bad))

    def _explain(self, epoch: int, step: int) -> str:
        """Replay from the last checkpoint, uncaptured, to find where the first broken value came from."""
        kept = self.out / "last.ckpt"
        twin = Session(self.session.fabric, self.session.recipe, self.machine.data_dir, capture=False)
        replay = _Run(twin, self.out, self.machine, Silent())
        if kept.is_file():
            replay.restore()
        place = find_non_finite(twin.network, replay.repeat(epoch, step))
        where = f"first non-finite value: {place}" if place else "replaying the steps did not reproduce it"
        return f"the loss is not finite in step {step + 1} of epoch {epoch + 1}; {where}; {self._kept()}"

    def _kept(self) -> str:
        kept = self.out / "last.ckpt"
        state = f"last good checkpoint: {kept}" if kept.is_file() else "no checkpoint was written before it"
        return f"{state}; a smaller optim.learning_rate or optim.clip=1 may help"

    def repeat(self, last_epoch: int, last_step: int) -> Iterator[None]:
        """The steps from here to the given one, yielding between backward and update."""
        for epoch in range(self.progress.next_epoch, last_epoch + 1):
            for number, indices in enumerate(self.session.epoch(epoch)):
                self.session.step.backward(indices)
                yield
                self.session.step.update()
                self.session.advance()
                if (epoch, number) == (last_epoch, last_step):
                    return

    def evaluate(self, examples: Examples) -> Evaluation:
        """The network as it is now, on a split."""
        session = self.session
        return evaluate(session.judged, examples, session.task, session.pipeline, session.objective)

    def _close_epoch(self, epoch: int, validation: Evaluation, seconds: float) -> None:
        session, progress = self.session, self.progress
        self._check_folder()
        noticed = watch_health(session.network, health_inputs(session.splits.validation, session.pipeline))
        findings = {"findings": noticed.pop("findings")} if "findings" in noticed else {}
        row = {
            "epoch": epoch,
            "train_loss": session.step.mean_loss(),
            **_named("val", validation),
            "learning_rate": session.learning_rate,
            "seconds": round(seconds, 4),
            "images_per_second": round(session.steps_per_epoch * session.recipe.batch_size / seconds, 1),
            **self.technique.row(),
            **noticed,
        }
        self.rows.append(row)
        progress.next_epoch = epoch + 1
        progress.seconds += seconds
        self.keep_if_best(epoch, validation)
        if epoch + 1 in session.recipe.keep_epochs:
            self.save_weights(f"epoch-{epoch + 1}", epoch)
        self.technique.after_epoch(self, epoch, validation)
        is_due = time.monotonic() - self._saved_at >= _SECONDS_BETWEEN_CHECKPOINTS
        self._save_checkpoint(is_due=is_due or self._is_over() or progress.next_epoch == 1)
        self._write_rows()
        self.watcher.epoch_done(row | findings)

    def keep_if_best(self, epoch: int, validation: Evaluation) -> None:
        """Keep the weights as those of the run if no epoch was better."""
        progress, value = self.progress, validation.value_of(self.selects_by)
        if progress.best is None or self.selects_by.is_better(value, progress.best):
            progress.best, progress.best_epoch = value, epoch
            progress.best_metrics = _named("val", validation)
            if not self.technique.keeps_last:
                self.save_weights("weights", epoch)

    def save_weights(self, name: str, epoch: int) -> None:
        """Write the weights of now to `<name>.safetensors` in the folder of the run."""
        session = self.session
        if session.fabric.is_global_zero:
            config = config_as_json(session.network.config)
            header = {"model": session.recipe.model, "config": config, "epoch": epoch}
            header |= self.technique.header()
            save_weights(self.out / f"{name}.safetensors", session.kept_state, header)

    def use_weights(self, name: str) -> Plain:
        """Go on with the weights in `<name>.safetensors`; what its header says."""
        state, header = load_weights(self.out / f"{name}.safetensors")
        self.session.use(state)
        self.technique.adopt(self.session.network, header)
        return header

    def _check_folder(self) -> None:
        """Raise where the folder was deleted or moved while the run trained."""
        if self.session.fabric.is_global_zero and not (self.out / "recipe.json").is_file():
            raise UserError(f"{self.out} was deleted or moved while the run trained; nothing more is saved")

    def _save_checkpoint(self, *, is_due: bool) -> None:
        if not is_due or not self.session.fabric.is_global_zero:
            return
        if self.technique.keeps_last:
            self.save_weights("weights", self.progress.next_epoch - 1)
        own = {"progress": asdict(self.progress), "rows": self.rows, "precision": self.machine.precision}
        save_checkpoint(self.out / "last.ckpt", self.session.state() | own)
        self._saved_at = time.monotonic()

    def _write_rows(self) -> None:
        if self.session.fabric.is_global_zero:
            write_text(self.out / "metrics.jsonl", "".join(json.dumps(row) + "\n" for row in self.rows))

    def finish(self) -> Plain:
        """Test the kept weights and write result.json."""
        session, progress = self.session, self.progress
        self._check_folder()
        session.fabric.barrier()
        images = session.source.test(session.fabric.device)
        more = self.technique.finish(self, images)
        self.use_weights("weights")
        test = evaluate(
            session.judged,
            images,
            session.task,
            session.pipeline,
            session.objective,
            on_images=lambda count: self.watcher.testing(count, len(images)),
        )
        result = {
            "recipe": recipe_as_json(session.recipe),
            "metrics": {
                **_named("test", test),
                **self._kept_metrics(),
                **self.technique.metrics(),
                "epochs": progress.next_epoch,
            },
            **more,
            "parameters": count_parameters(session.network),
            "seed": session.recipe.seed,
            "seconds": round(progress.seconds, 3),
            "precision": self.machine.precision,
            "devices": session.fabric.world_size,
            **provenance(session.fabric.device),
        }
        self._check_folder()
        if session.fabric.is_global_zero:
            write_json(self.out / "result.json", result)
        return result

    def _kept_metrics(self) -> Plain:
        """The validation of the weights that the run ends with."""
        progress = self.progress
        if not self.technique.keeps_last:
            return {**progress.best_metrics, "best_epoch": progress.best_epoch}
        last = self.rows[-1]
        return {**{key: last[key] for key in progress.best_metrics}, "best_epoch": last["epoch"]}


def _named(split: str, evaluation: Evaluation) -> dict[str, float]:
    """Loss and metrics with the name of their split before them."""
    found = {"loss": evaluation.loss, **evaluation.metrics}
    return {f"{split}_{name}": value for name, value in found.items()}
