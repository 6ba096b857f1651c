"""What the page gets of a look: plain data with pictures inside, the same live and in a file."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchcaps.core import Plain
from torchcaps.parse import OFFSETS, ParseTree
from torchcaps.viz import heat_colours, to_array, to_colours, to_data_uri, tree_markup

from .covering import Covering
from .reference import Compared, Reference
from .rounds import Round
from .subject import Look, Subject
from .words import say_answer, say_cover, say_neighbour, say_round, say_tree, say_typical

_MOST_CLASSES = 10


def picture_uri(image: Tensor) -> str:
    """One image (channels, height, width) as the page shows it."""
    return to_data_uri(to_colours(image[None])[0])


def heat_uri(heat: Tensor) -> str:
    """A map (height, width), to lie over the image."""
    return to_data_uri(heat_colours(to_array(heat)))


def view_cover(covering: Covering) -> Plain:
    """The map of a covering so far, and in words how much the covers cost."""
    words = say_cover(covering.most_lost, covering.whole)
    return {"heat": heat_uri(covering.heat()), "words": words, "done": covering.is_done}


def view_look(look: Look, subject: Subject, *, label: int | None, prepared: str, hint: str) -> Plain:
    """An image as one network sees it."""
    names, values = subject.info.classes, look.activations.tolist()
    doubt = f" If {hint}" if hint else ""
    order = sorted(range(len(values)), key=lambda number: -values[number])
    return {
        "picture": picture_uri(look.shown),
        "prepared": prepared,
        "answer": names[look.winner],
        "winner": look.winner,
        "words": say_answer(names, values, look.winner, label) + doubt,
        "classes": [{"name": names[number], "value": values[number]} for number in order[:_MOST_CLASSES]],
        "more_classes": max(0, len(values) - _MOST_CLASSES),
        "heat": None if look.evidence is None else heat_uri(look.evidence),
        "last": None if look.last is None else _view_last(look.last, look, subject, label),
        "reading": "" if look.last is None else _reading(look.last.tree),
        "obstacle": look.obstacle,
        "capsule": _view_capsule(look),
    }


def _reading(tree: ParseTree) -> str:
    return say_tree(len(tree.layer_sizes), has_places=tree.grid is not None)


def _view_last(last: Round, look: Look, subject: Subject, label: int | None) -> Plain:
    piece = _piece(last, look.shown, subject, label=label, shares=look.shares)
    return _view_round(last, last.number, piece)


def view_earlier(image: Tensor, winner: int, subject: Subject, label: int | None) -> list[Plain]:
    """The rounds before the last one, of an image as bytes."""
    shown = subject.pipeline.for_evaluation(image).images[0]
    rounds = subject.earlier_rounds(image, winner)
    return [
        _view_round(each, subject.num_rounds, _piece(each, shown, subject, label=label)) for each in rounds
    ]


def _piece(each: Round, shown: Tensor, subject: Subject, **facts: Any) -> str:
    names = subject.info.classes
    return tree_markup(shown, each.tree, field=subject.field, class_names=names, is_whole=False, **facts)


def _view_round(each: Round, last: int, piece: str) -> Plain:
    return {
        "number": each.number,
        "distance": each.distance,  # not rounded: the page rounds it, as its words do
        "words": say_round(each, last),
        "tree": piece,
    }


def _view_capsule(look: Look) -> Plain | None:
    """The numbers of the class capsules, and in which order those of the winner change the image."""
    if look.drawn is None or look.changes is None:
        return None
    return {
        "poses": [[round(value, 5) for value in row] for row in look.poses.tolist()],
        "order": look.changes.argsort(descending=True, stable=True).tolist(),
        "offsets": list(OFFSETS),
        "picture": picture_uri(look.drawn),
    }


def view_sheet(perturbed: Tensor) -> str:
    """All reconstructions with one number changed, as one picture: a row for each number."""
    joined = torch.cat([torch.cat(list(row), dim=-1) for row in perturbed], dim=-2)
    return picture_uri(joined.clamp(0, 1))


def view_typical(found: Compared, subject: Subject, reference: Reference) -> Plain:
    """How usual the tree of an image is, and the images whose trees are nearest."""
    pool = reference.pool
    images, words = pool.to_compare, pool.words
    return {
        "state": "ready",
        "words": say_typical(found, subject.info.classes[found.read_as], words, len(images)),
        "nearest": [
            {
                "picture": picture_uri(images.images[each.number : each.number + 1][0]),
                "label": subject.info.classes[int(images.labels[each.number])],
                "words": say_neighbour(each.differing, found.children),
            }
            for each in found.nearest
        ],
    }
