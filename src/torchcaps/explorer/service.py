"""What the page asks of the program: each question is a name and plain data, and so is its answer."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import TypeVar

from PIL import Image
from torch import Tensor

from torchcaps.core import Plain, UserError
from torchcaps.viz import to_pictures

from .shelf import Shelf
from .subject import Subject, picture_uri, view_cover, view_earlier, view_look, view_typical
from .upload import Ready, decode

Kind = TypeVar("Kind")
_SHOWN_AT_ONCE = 30  # images to choose from
_LARGEST_POSE = 1000.0


class Service:
    """Answers questions about the networks of a shelf."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._verbs: dict[str, Callable[[Plain], Plain]] = {
            "look": self._look,
            "rounds": self._rounds,
            "cover": self._cover,
            "typical": self._typical,
            "reconstruct": self._reconstruct,
            "examples": self._examples,
            "pose": self._pose,
            "parts": self._parts,
        }

    def answer(self, verb: str, question: Plain) -> Plain:
        """The answer to a question; one that makes no sense is a `UserError`."""
        if verb not in self._verbs:
            raise UserError("There is no such question.")
        return self._verbs[verb](question)

    def _look(self, question: Plain) -> Plain:
        subject, ready, label = self._image(question)
        self._shelf.reference(take(question, "model", str))  # begins in the background
        hint = subject.hint(ready.image) if ready.is_photo else ""
        return view_look(subject.look(ready.image), subject, label=label, prepared=ready.words, hint=hint)

    def _rounds(self, question: Plain) -> Plain:
        subject, ready, label = self._image(question)
        return {"earlier": view_earlier(ready.image, take(question, "winner", int), subject, label)}

    def _cover(self, question: Plain) -> Plain:
        subject, ready, _ = self._image(question)
        return view_cover(subject.cover(ready.image, take(question, "winner", int)))

    def _typical(self, question: Plain) -> Plain:
        reference = self._shelf.reference(take(question, "model", str))
        if not reference.is_ready:
            return {"state": "computing"}
        if reference.obstacle:
            return {"state": "unknown", "words": f"Not known: {reference.obstacle}."}
        subject, ready, _ = self._image(question)
        return view_typical(reference.compare(ready.image), subject, reference)

    def _reconstruct(self, question: Plain) -> Plain:
        subject = self._shelf.subject(take(question, "model", str))
        poses = [[_number(value) for value in _checked(row, list)] for row in take(question, "poses", list)]
        classes = len(subject.info.classes)
        if len(poses) != classes or len({len(row) for row in poses}) != 1:
            raise UserError(f"The capsules of {classes} classes are needed, all of one length.")
        return {"picture": picture_uri(subject.reconstruct(take(question, "winner", int), poses))}

    def _examples(self, question: Plain) -> Plain:
        key = take(question, "model", str)
        subject, pool = self._shelf.subject(key), self._shelf.reference(key).pool
        images = pool.to_choose
        start = max(0, take(question, "start", int)) % len(images)
        numbers = range(start, min(start + _SHOWN_AT_ONCE, len(images)))
        shown = images.images[start : start + len(numbers)]
        kind = "stand-in for " if pool.is_drawn else ""
        return {
            "words": f"{len(images):,} {pool.words}",
            "next": (start + len(numbers)) % len(images),
            "items": [
                {
                    "number": number,
                    "picture": picture_uri(image),
                    "label": kind + subject.info.classes[int(images.labels[number])],
                }
                for number, image in zip(numbers, shown, strict=True)
            ],
        }

    def _pose(self, question: Plain) -> Plain:
        return self._shelf.poses(take(question, "item", int)).show(take(question, "number", int))

    def _parts(self, question: Plain) -> Plain:
        return self._shelf.parts(take(question, "item", int)).show(take(question, "number", int))

    def _image(self, question: Plain) -> tuple[Subject, Ready, int | None]:
        """The network that is asked, the image it is asked about, and the class of that if it is known."""
        key, image = take(question, "model", str), take(question, "image", dict)
        subject = self._shelf.subject(key)
        if "file" in image:
            return subject, subject.read(decode(take(image, "file", str))), None
        number, owner = take(image, "example", int), take(image, "of", str)
        pool = self._shelf.reference(owner).pool
        images = pool.to_choose
        if not 0 <= number < len(images):
            raise UserError(f"There are images 0 to {len(images) - 1}.")
        found = images.images[number : number + 1]
        has_class = not pool.is_drawn and self._shelf.subject(owner).info.classes == subject.info.classes
        label = int(images.labels[number]) if has_class else None
        if tuple(found.shape[1:]) == (subject.info.channels, subject.info.height, subject.info.width):
            return subject, Ready(found, "taken as it is"), label
        return subject, subject.read(_as_file(found[0])), label


def _as_file(image: Tensor) -> bytes:
    """An image of another network's dataset, as a file that any network takes."""
    pixels = (to_pictures(image[None])[0] * 255).round().astype("uint8")
    content = BytesIO()
    Image.fromarray(pixels).save(content, "PNG")
    return content.getvalue()


def take(question: Plain, name: str, kind: type[Kind]) -> Kind:
    """A value of a question, of the type it must have."""
    if name not in question:
        raise UserError(f"The question needs {name!r}.")
    return _checked(question[name], kind)


def _checked(value: object, kind: type[Kind]) -> Kind:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise UserError(f"A value of type {kind.__name__} is needed, not {type(value).__name__}.")
    return value


def _number(value: object) -> float:
    if not isinstance(value, int | float) or not abs(value) < _LARGEST_POSE:
        raise UserError("The numbers of a capsule must be finite and small.")
    return float(value)
