"""What the page says, in sentences for people who have not heard of capsules."""

from __future__ import annotations

from collections.abc import Sequence

from torchcaps.parse import FEW_IMAGES, Evenness, rank_in_words

from .reference import Compared
from .rounds import Round

_CLEAR, _CLOSE = 0.3, 0.1  # margins between the two highest activations
_NO_SPLIT = "0 if they are, 1 for a capsule whose couplings are 1 to one parent and 0 to all others."
_HARDLY_LOST = 0.1  # of the activation, while a place is covered


def say_answer(names: Sequence[str], values: Sequence[float], winner: int, label: int | None) -> str:
    """The class, the runner-up, how far apart they are, and the truth where it is known."""
    truth = _say_limits(names) if label is None else _say_truth(names, winner, label)
    if len(values) == 1:
        return f"There is only one class. {truth}".strip()
    order = sorted(range(len(values)), key=lambda number: -values[number])
    second = next(number for number in order if number != winner)
    margin = values[winner] - values[second]
    how = "a clear answer" if margin >= _CLEAR else "a close call" if margin < _CLOSE else "fairly clear"
    return (
        f"The capsule of {names[winner]} is the most active: {values[winner]:.2f}. Next comes "
        f"{names[second]} with {values[second]:.2f}. The margin between them is {margin:.2f}: {how}. {truth}"
    ).strip()


def _say_limits(names: Sequence[str]) -> str:
    """Say that the network knows no other classes; for images whose class is unknown."""
    return f"It knows {len(names)} classes and names one of them, even if the image shows something else."


def _say_truth(names: Sequence[str], winner: int, label: int) -> str:
    return "The answer is right." if winner == label else f"The answer is wrong: it is {names[label]}."


def say_tree(layers: int, *, has_places: bool) -> str:
    """How the drawing of a tree is to be read."""
    way = "from left to right" if layers == 2 else "from bottom to top"
    seen = "places on the image, the capsules that look there" if has_places else "the image, the capsules"
    shown = "what it looks at" if has_places else "its activation and its couplings"
    return (
        f"Read {way}: {seen}, and the answer they vote for. Thick orange lines are strong couplings. Point "
        f"at a capsule to see {shown}; click to follow it."
    )


def say_round(here: Round, last: int) -> str:
    """How far couplings are from an even split after a round, and whether routing does anything."""
    is_split = all(layer.is_split for layer in here.tree.evenness)
    even = f"{here.distance:.3f} away from an even split: 0 is even, 1 gives all to one parent."
    if not is_split:
        even = f"{here.distance:.3f} away from being all alike: {_NO_SPLIT}"
    if last == 1:
        return (
            "This network finds its couplings in one pass, so there are no rounds to step through. "
            f"They are {even} {say_hardly(here.tree.evenness)}"
        ).strip()
    text = f"After round {here.number} of {last}, couplings are {even}"
    if here.number == 1 and not round(here.distance, 3):  # not all routings begin so: slots have a state
        text += " Routing begins with an even split, so there is hardly a tree yet."
    elif here.number == last:
        text += f" {say_hardly(here.tree.evenness)}"
    return text.strip()


def say_hardly(layers: Sequence[Evenness]) -> str:
    """Say that couplings stay close to even; empty where they do not."""
    idle = sum(layer.hardly_routes for layer in layers)
    if not idle:
        return ""
    if idle == len(layers):
        return "This network hardly routes: its couplings stay close to even, so the tree says little."
    return f"{idle} of its {len(layers)} routed layers hardly route: their couplings stay close to even."


def say_cover(lost: float, whole: float) -> str:
    """How much covering costs: the colours of the map begin and end at its own lowest and highest value."""
    words = f"One cover takes away at most {lost:.2f} of its activation of {whole:.2f}."
    if lost < _HARDLY_LOST * whole:
        words += " That is little, so the map says little."
    return words


def say_rounded(error: float) -> str:
    """How far the drawings of a file are from those of the network."""
    tones = 255 * error
    away = "less than 0.01" if tones < 0.01 else f"at most {tones:.2f}"
    return (
        "This file holds the decoder of the network, with weights in half precision. For these images, its "
        f"drawings are {away} of 255 tones away from those of the network."
    )


def say_typical(found: Compared, name: str, pool: str, images: int) -> str:
    """How usual a tree is among those of the pool."""
    if found.share is None:
        return f"Not known: too few of the {images:,} {pool} are read as {name}."
    same = f"{found.same:,}" if found.same else "none"
    which = f"held-out ones read as {name}"
    rank = (
        f"stranger than {rank_in_words(found.share, found.others)} {which}"
        if found.share
        else f"no stranger than any of the {found.others:,} {which}"
    )
    return (
        f"Compared with {images:,} {pool}. This tree, with couplings rounded, is {rank}. "
        f"{_say_strange(found.share, found.others)} "
        f"The same tree is found in {same} of the {images:,} images."
    )


def _say_strange(share: float, others: int) -> str:
    """Whether a rank is unusual: among a few images, one in so many is the strangest of all by chance."""
    if others < FEW_IMAGES:
        return "They are too few to say what is usual."
    unusual = "That is unusual: be careful with this answer."
    return unusual if share >= 0.95 else "That is within the usual range."


def say_neighbour(differing: int, children: int) -> str:
    """How alike a tree is."""
    return "the same tree" if not differing else f"{differing:,} of {children:,} capsules differ"
