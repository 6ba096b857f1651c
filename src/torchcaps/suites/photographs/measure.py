"""The suite: photographs of test digits are given to what answers in `torchcaps predict`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from PIL import Image

from torchcaps.core import Metric, UserError, register_metrics
from torchcaps.parse import some_images
from torchcaps.train import predictor_of
from torchcaps.zoo import NoDigitError, PhotoPredictor, preparation_of

from ..api import SUITES, Material, Measurement
from .camera import take_photograph
from .conditions import EMPTY, GROUPS, mixed
from .pen import trace
from .scene import Scene, draw_chance

DIGITS = 50  # test images that are photographed under each condition, where no number is asked for

register_metrics(
    Metric("read_right", "read right", "higher", "%", 100.0),
    Metric("refused", "refused", "neither", "%", 100.0),
    Metric("read_wrong", "read wrong", "lower", "%", 100.0),
)


@SUITES.register("photographs")
def measure_photographs(material: Material) -> list[Measurement]:
    """What becomes of digits under each condition, and how many sheets without a digit are refused."""
    data_name = material.run.recipe.data.name
    if preparation_of(data_name) != "digit":
        raise UserError(
            f"{material.run.folder} was trained on {data_name}; the photographs suite needs a run on mnist "
            "or mnist5k, for which torchcaps predict prepares photographs"
        )
    data = some_images(material.data, DIGITS if material.limit is None else material.limit)
    written, classes = trace(data.images), [data.classes[number] for number in data.labels.tolist()]
    chances = [draw_chance(number) for number in range(len(written))]
    reader = PhotoPredictor(predictor_of(material.run, material.data_dir))

    def read(group: str, condition: str, scenes: Iterable[Scene]) -> Measurement:
        photographs = map(take_photograph, written, scenes, chances)
        return Measurement(group, condition, _shares(reader, photographs, classes))

    found = []
    for group, conditions in GROUPS.items():
        for condition, changes in conditions.items():
            found.append(read(group, condition, [replace(Scene(), **changes)] * len(written)))
    found.append(read("all at once", "some of these", map(mixed, range(len(written)))))
    for condition, changes in EMPTY.items():
        scene = replace(Scene(), **changes)
        empty = [_answer(reader, take_photograph(None, scene, chance)) is None for chance in chances]
        found.append(Measurement("no digit", condition, {"refused": sum(empty) / len(empty)}))
    return found


def _shares(
    reader: PhotoPredictor, photographs: Iterable[Image.Image], classes: list[str]
) -> dict[str, float]:
    answers = [_answer(reader, photograph) for photograph in photographs]
    right = sum(answer == name for answer, name in zip(answers, classes, strict=True))
    refused = answers.count(None)
    counts = {"read_right": right, "refused": refused, "read_wrong": len(answers) - right - refused}
    return {name: count / len(answers) for name, count in counts.items()}


def _answer(reader: PhotoPredictor, photograph: Image.Image) -> str | None:
    """The class of a photograph, as `torchcaps predict` has it; None where it refuses to answer."""
    try:
        return str(reader.answer(photograph).row["class"])
    except NoDigitError:
        return None
