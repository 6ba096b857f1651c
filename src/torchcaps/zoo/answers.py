"""What networks say of photographs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor, nn

from torchcaps.core import UserError
from torchcaps.data import DatasetInfo, as_bytes, find_images, fit_picture, open_any
from torchcaps.train import (
    Answer,
    Pipeline,
    Predictor,
    Run,
    is_numbered,
    load_predictor,
    open_picture,
    predictor_of,
    read_image,
)

from .entry import preparation_of
from .load import find_run
from .measured import may_hint
from .photo import prepare_digit, say_turn

_QUARTERS = (Image.Transpose.ROTATE_90, Image.Transpose.ROTATE_180, Image.Transpose.ROTATE_270)  # to the left


class Photo(NamedTuple):
    """A photograph as a network takes it, and what was done to get it, in words where that is known."""

    image: UInt8[Tensor, "1 channels height width"]
    preparation: str | None = None


def read_photo(run: Run, path: Path | Image.Image, info: DatasetInfo) -> Photo:
    """An image file, or an open one, for the network of a run; a digit as MNIST has it."""
    if preparation_of(run.recipe.data.name) != "digit":
        return Photo(read_image(path, info))
    with nullcontext() if isinstance(path, Image.Image) else _naming(path):
        picture, words = prepare_digit(open_any(path, deep="keep"))
    return Photo(as_bytes(fit_picture(picture, info.height, info.width, info.fit)).unsqueeze(0), words)


@torch.no_grad()
def hint_for(run: Run, image: UInt8[Tensor, "1 channels height width"], info: DatasetInfo) -> str:
    """What `predict` says of a photographed digit that may be turned; "" where it says nothing.

    Args:
        run: A trained network; one that reads no digits, or whose hints are not good enough, gives none.
        image: From `read_photo`.
        info: Of the data of the run.
    """
    if preparation_of(run.recipe.data.name) != "digit" or not may_hint(run.folder):
        return ""
    turned = torch.cat([image.rot90(quarters, (2, 3)) for quarters in range(4)]).to(run.device)
    inputs = Pipeline(run.recipe.data, info).for_evaluation(turned).inputs
    return say_turn(run.model(inputs).activations.float().cpu(), info.classes)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Mistakes in the block are said of the file at `path`, which may be one of many."""
    try:
        yield
    except UserError as error:
        if str(path) in str(error):
            raise
        raise UserError(f"{path}: {error}") from error


class PhotoPredictor:
    """Answers for photographs: prepares each for the network behind it, and says how.

    With `hints`, an answer also says where a digit would be another one on a turned page.
    """

    def __init__(self, predictor: Predictor, *, hints: bool = False) -> None:
        self.predictor, self._hints = predictor, hints
        self._preparation = preparation_of(predictor.recipe.data.name)

    def answer(self, picture: Image.Image) -> Answer:
        """What the network says of a picture; the row of the answer says what was done to it."""
        if self._preparation != "digit":
            return self.predictor.answer(picture)
        prepared = prepare_digit(picture)
        answer = self.predictor.answer(prepared.picture)
        hint = self._hint(answer, prepared.picture) if self._hints else ""
        row = {**answer.row, **({"hint": hint} if hint else {}), "preparation": prepared.words}
        words = (answer.words, hint, prepared.words)
        return replace(answer, row=row, words="; ".join(part for part in words if part))

    def _hint(self, answer: Answer, digit: Image.Image) -> str:
        """What the answer would be if the digit were turned, where that is surer; "" where it is not."""
        others = [self.predictor.answer(digit.transpose(turn)) for turn in _QUARTERS]
        rows = [each.row["activations"] for each in (answer, *others)]
        return say_turn(torch.tensor([list(row.values()) for row in rows]), list(rows[0]))

    def answer_file(self, path: Path) -> Answer:
        """What the network says of an image file, or of `test:17`; a mistake names it."""
        with _naming(path):
            if is_numbered(path):  # an image of its own data is as it learnt them
                return self.predictor.answer_file(path)
            if self._preparation == "digit":
                return self.answer(open_any(path, deep="keep"))
            return self.answer(open_picture(path, self.predictor.info))


def photo_predictor(
    source: str, device: str = "cpu", data_dir: Path | None = None, *, trust: bool = False
) -> PhotoPredictor:
    """What answers for photographs: a pretrained network by its name, a run folder, or an exported file."""
    found = find_run(source)
    return PhotoPredictor(load_predictor(found, device, data_dir, trust=trust), hints=may_hint(found))


def predict(
    source: Run | Predictor | Path | str,
    images: Iterable[Path | str] | Path | str,
    data_dir: Path | None = None,
) -> list[dict[str, Any]]:
    """What a network says of image files, as plain data, one row for each.

    Args:
        source: The name of a pretrained network, a run or its folder, a predictor, or an exported file.
        images: Files, folders of them, shell patterns, or `test:17` for an image of a run's own data.
        data_dir: Folder of the datasets, for a run that does not know its own.

    Examples:
        >>> predict("dr_capsnet_minimal.mnist", "digit.jpg")[0]["class"]
        '7'
    """
    names = list(images) if isinstance(images, Iterable) and not isinstance(images, str) else [images]
    _expect_files(source, names)
    paths = [Path(name) for name in find_images([str(name) for name in names])]
    if isinstance(source, Path | str):
        found = photo_predictor(str(source), data_dir=data_dir)
    elif isinstance(source, Run):
        found = PhotoPredictor(predictor_of(source, data_dir), hints=may_hint(source.folder))
    else:
        found = PhotoPredictor(source)
    return [{"image": str(path), **found.answer_file(path).row} for path in paths]


def _expect_files(source: object, names: Sequence[object]) -> None:
    for given in (source, *names):
        if isinstance(given, Tensor | nn.Module):
            raise UserError(
                f"predict takes a run and image files, got a {type(given).__name__}; "
                "a network answers for a tensor of images itself: model(images)"
            )
    if not isinstance(source, Run | Predictor):
        find_run(source)  # type: ignore[arg-type]  # says what a run is named by
    for given in names:
        if not isinstance(given, os.PathLike | str):
            raise UserError(
                f"predict takes a run and image files, got a {type(given).__name__}; "
                "torchcaps.zoo.photo_predictor(RUN).answer(picture) answers for a picture of Pillow"
            )
