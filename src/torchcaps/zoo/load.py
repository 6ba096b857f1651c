"""Pretrained networks, ready to use: as models, as runs, and for photographs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from PIL import Image

from torchcaps import models
from torchcaps.core.errors import UserError
from torchcaps.data import find_images
from torchcaps.models import Network
from torchcaps.train import Answer, Predictor, Run, load_predictor, load_run
from torchcaps.train import predict as predict_by_run
from torchcaps.train.predict import open_picture, predictor_of

from .digit import prepare_digit
from .entry import PACKAGED, Entry, entry_of_model, find_entry, list_weights
from .store import entry_folder


def create_model(
    name: str, *, pretrained: bool | str = False, weights: Path = PACKAGED, **overrides: object
) -> Network:
    """Build a registered model, with random initial weights or with pretrained ones.

    Args:
        name: A name from `list_models()`.
        pretrained: True takes the weights of the model, or a name such as "mnist" says what they were trained
            on where there are several; they are verified by checksum.
        weights: Folder of pretrained networks.
        **overrides: Fields of the model's config, as in `torchcaps.models.create_model`. Pretrained weights
            have their own; give none, and change the classes afterwards with `change_classes`.
    """
    if not pretrained:
        return models.create_model(name, **overrides)
    if overrides:
        raise UserError(
            f"pretrained weights have their own fields, so {', '.join(overrides)} cannot be set; other "
            "classes are made with torchcaps.change_classes(model, NUMBER)"
        )
    entry = entry_of_model(name, pretrained if isinstance(pretrained, str) else "", weights)
    return load_run(entry_folder(entry, weights)).model


def load_pretrained(name: str, device: str = "cpu", *, weights: Path = PACKAGED) -> Run:
    """A pretrained network as a run, by its full name, for `eval`, `explain` and `export`."""
    return load_run(entry_folder(find_entry(name, weights), weights), device)


def is_pretrained(name: str, weights: Path = PACKAGED) -> bool:
    """Whether `name` is that of a pretrained network and not a path."""
    return not Path(name).exists() and any(entry.name == name for entry in list_weights(folder=weights))


class PhotoPredictor:
    """Answers for photographs: prepares each for the network behind it, and says how."""

    def __init__(self, predictor: Predictor, entry: Entry | None = None) -> None:
        self.predictor, self.entry = predictor, entry

    def answer(self, picture: Image.Image) -> Answer:
        """What the network says of a picture; the row of the answer says what was done to it."""
        if self.entry is None or self.entry.prepare != "digit":
            return self.predictor.answer(picture)
        prepared = prepare_digit(picture)
        answer = self.predictor.answer(prepared.picture)
        row = {**answer.row, "preparation": prepared.words}
        return replace(answer, row=row, words=f"{answer.words}; {prepared.words}")

    def answers(self, paths: Sequence[Path]) -> Iterator[tuple[Path, Answer]]:
        """What the network says of each image file, one after the other."""
        for path in paths:
            yield path, self.answer(open_picture(path, self.predictor.info))


def photo_predictor(
    source: str,
    device: str = "cpu",
    data_dir: Path | None = None,
    *,
    trust: bool = False,
    weights: Path = PACKAGED,
) -> PhotoPredictor:
    """What answers for photographs: a pretrained network by its name, a run folder, or an exported file."""
    if not is_pretrained(source, weights):
        return PhotoPredictor(load_predictor(Path(source), device, data_dir, trust=trust))
    entry = find_entry(source, weights)
    return PhotoPredictor(predictor_of(load_run(entry_folder(entry, weights), device)), entry)


def predict(
    source: Run | Predictor | Path | str,
    images: Sequence[Path | str] | Path | str,
    data_dir: Path | None = None,
) -> list[dict[str, Any]]:
    """What a network says of image files, as plain data, one row for each.

    Args:
        source: The name of a pretrained network, a run or its folder, a predictor, or an exported file.
        images: Files, folders of them, or shell patterns.
        data_dir: Folder of the datasets, for a run that does not know its own.

    Examples:
        >>> predict("efficient_capsnet_mnist.mnist", "digit.jpg")[0]["class"]
    """
    if not isinstance(source, str) or not is_pretrained(source):
        return predict_by_run(source, images, data_dir)
    names = [images] if isinstance(images, Path | str) else images
    paths = [Path(name) for name in find_images([str(name) for name in names])]
    return [{"image": str(path), **answer.row} for path, answer in photo_predictor(source).answers(paths)]
