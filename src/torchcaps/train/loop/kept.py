"""What a run keeps in its folder while it trains: recipe, rows of epochs, weights and checkpoints."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from torchcaps.core import Plain, UserError, build_dataclass
from torchcaps.storage import load_weights, write_json_lines

from ..run import (
    RunPart,
    Whereabouts,
    card_of,
    provenance,
    read_data_card,
    write_recipe,
    write_weights,
)
from ..tasks import Evaluation
from .checkpoint import Checkpoint, described_damage, load_checkpoint, save_checkpoint
from .session import Session
from .unchanged import require_same_counts, require_same_data, require_same_files, require_same_precision

CHECKPOINT = "last.ckpt"  # where a run goes on after it was stopped
_SECONDS_BETWEEN_CHECKPOINTS = 15.0  # what a killed run repeats at most, besides the epoch it was in


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
        """From a checkpoint."""
        progress = build_dataclass(cls, {each.name: state[each.name] for each in fields(cls)}, "progress")
        if progress.next_epoch < 0:
            raise UserError(f"progress.next_epoch is {progress.next_epoch}")
        return progress


class KeptRun:
    """A session together with its folder; of several processes only the first writes."""

    def __init__(self, session: Session, out: Path, precision: str) -> None:
        self.session, self.out, self.precision = session, out, precision
        self.checkpoint = out / CHECKPOINT
        self.technique = session.technique
        self.selects_by = session.task.metric(session.recipe.select_by)
        self.progress = Progress()
        self.rows: list[Plain] = []
        self.parts: list[RunPart] = []  # where each was trained
        self._saved_at = time.monotonic()

    def restore(self) -> None:
        """Continue from the last checkpoint, or write down what is about to run."""
        session = self.session
        if self.checkpoint.is_file():
            before, info = read_data_card(self.out), session.splits.info
            require_same_data(self.out, before, info)
            state = load_checkpoint(self.checkpoint, session.fabric.device)
            require_same_precision(self.out, state.get("precision"), self.precision)
            require_same_counts(self.out, state.get("images"), self._images)
            require_same_files(self.out, before, info)
            with described_damage(self.checkpoint):
                session.restore(state)
                self.progress, self.rows = Progress.restored(state["progress"]), state["rows"]
                self.parts = state.get("parts", [])
        self._begin_part()
        if session.fabric.is_global_zero:
            (self.out / "result.json").unlink(missing_ok=True)  # of a finished run that now gets more epochs
            write_recipe(self.out, session.recipe, card_of(session.splits.info))
            write_json_lines(self.out / "metrics.jsonl", self.rows)

    def _begin_part(self) -> None:
        """Note where the run goes on, unless it stays where it was."""
        here: RunPart = {"from_epoch": self.progress.next_epoch, **provenance(self.session.fabric.device)}
        before = [part for part in self.parts if part["from_epoch"] < here["from_epoch"]]
        stays = bool(before) and before[-1] == {**here, "from_epoch": before[-1]["from_epoch"]}
        self.parts = before if stays else [*before, here]

    def whereabouts(self) -> Whereabouts:
        """Where each part was trained, of a run that went on elsewhere; else nothing."""
        return {"parts": self.parts} if any(part["from_epoch"] for part in self.parts) else {}

    @property
    def _images(self) -> tuple[int, int]:
        return len(self.session.splits.train), len(self.session.splits.validation)

    def require_folder(self) -> None:
        """Raise where the folder was deleted or moved while the run trained."""
        if self.session.fabric.is_global_zero and not (self.out / "recipe.json").is_file():
            raise UserError(f"{self.out} was deleted or moved while the run trained; nothing more is saved")

    @property
    def is_over(self) -> bool:
        """Whether the epochs are over, patience is lost or the technique is done."""
        recipe, done = self.session.recipe, self.progress.next_epoch
        lost_patience = 0 < recipe.patience <= done - 1 - self.progress.best_epoch
        return self.technique.is_done or done >= recipe.epochs or lost_patience

    def keep_epoch(self, row: Plain, validation: Evaluation) -> None:
        """An epoch is over: keep its row, its weights if they are the best, a checkpoint if one is due."""
        epoch, progress = row["epoch"], self.progress
        self.rows.append(row)
        progress.next_epoch = epoch + 1
        progress.seconds += row["seconds"]
        self.keep_if_best(epoch, validation)
        if epoch + 1 in self.session.recipe.keep_epochs:
            self.save_weights(f"epoch-{epoch + 1}", epoch)
        self.technique.after_epoch(self, epoch, validation)
        is_due = time.monotonic() - self._saved_at >= _SECONDS_BETWEEN_CHECKPOINTS
        if is_due or self.is_over or progress.next_epoch == 1:
            self.save_checkpoint()
        if self.session.fabric.is_global_zero:
            write_json_lines(self.out / "metrics.jsonl", self.rows)

    def keep_if_best(self, epoch: int, validation: Evaluation) -> None:
        """Keep the weights as those of the run if no epoch was better."""
        progress = self.progress
        if self._is_best(validation):
            progress.best, progress.best_epoch = validation.value_of(self.selects_by), epoch
            progress.best_metrics = validation.named("val")
            if not self.technique.keeps_last:
                self.save_weights("weights", epoch)

    def _is_best(self, validation: Evaluation) -> bool:
        """Whether no epoch was better; of equal ones, as with a Dice of 0, the lower loss is better."""
        best, value = self.progress.best, validation.value_of(self.selects_by)
        if best is None or value != best:
            return best is None or self.selects_by.is_better(value, best)
        return validation.loss < self.progress.best_metrics["val_loss"]

    def kept_metrics(self) -> Plain:
        """The validation of the weights that the run ends with."""
        progress = self.progress
        if not self.technique.keeps_last:
            return {**progress.best_metrics, "best_epoch": progress.best_epoch}
        last = self.rows[-1]
        return {**{key: last[key] for key in progress.best_metrics}, "best_epoch": last["epoch"]}

    def save_weights(self, name: str, epoch: int) -> None:
        """Write the weights of now to `<name>.safetensors` in the folder of the run."""
        session = self.session
        if session.fabric.is_global_zero:
            header = {"model": session.recipe.model, "epoch": epoch, **self.technique.header()}
            write_weights(self.out / f"{name}.safetensors", session.weights.network, header)

    def use_weights(self, name: str) -> int:
        """Go on with the weights in `<name>.safetensors`, and return the epoch that they are of."""
        state, header = load_weights(self.out / f"{name}.safetensors")
        self.session.use(state)
        self.technique.adopt(header)
        return int(header["epoch"])

    def save_checkpoint(self) -> None:
        """Write all that the run needs to go on from here."""
        if not self.session.fabric.is_global_zero:
            return
        if self.technique.keeps_last:
            self.save_weights("weights", self.progress.next_epoch - 1)
        state: Checkpoint = {
            **self.session.state(),
            "progress": asdict(self.progress),
            "rows": self.rows,
            "precision": self.precision,
            "images": self._images,
            "parts": self.parts,
        }
        save_checkpoint(self.checkpoint, state)
        self._saved_at = time.monotonic()
