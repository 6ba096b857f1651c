"""What the suite of true trees found of a network, in the words of its card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torchcaps.core import Plain, UserError

TRUTH = "partwhole.json"  # in a run folder: what `torchcaps eval RUN --suite partwhole --json` printed
_PLACE = ("group", "condition")  # where in the suite a row belongs
_KINDS = {"": "carved", "even_": "with even couplings", "random_": "random"}


def say_truth(found: Plain) -> list[str]:
    """A line on trees and maps against the truth; none where nothing was measured."""
    if not found:
        return []
    try:
        (rows,) = found["runs"].values()
        (measured,) = (row for row in rows if row["group"] == "ground truth")
        numbers = {key: float(value) for key, value in measured.items() if key not in _PLACE}
        return [_line(numbers, found["limit"])]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(
            f"{TRUTH} is not what torchcaps eval RUN --suite partwhole --json prints; write it again"
        ) from error


def _line(measured: Mapping[str, float], limit: int | None) -> str:
    share = {key: f"{value:.1%}" for key, value in measured.items()}
    trees = [
        f"{kind} {share[f'{key}tree_precision']} and {share[f'{key}tree_recall']}"
        for key, kind in _KINDS.items()
    ]
    images = "test images" if limit is None else f"up to {limit:,} test images"
    return (
        f"Against the truth of {images} (`torchcaps eval NAME --suite partwhole`), of this one run: accuracy "
        f"{share['accuracy']}, with even couplings {share.get('accuracy_with_even', 'not measured')}; "
        f"precision and recall of the lines of trees: {', '.join(trees)}. {_verdict(measured)}"
    )


def _verdict(measured: Mapping[str, float]) -> str:
    others: Sequence[float] = [measured[f"{key}tree_precision"] for key in ("even_", "random_")]
    if measured["tree_precision"] > max(others):
        return "Its trees are nearer to those of the parts than both others."
    return "Its trees are not those of the parts."
