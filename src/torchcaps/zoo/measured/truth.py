"""What the suite of true trees found of a network, in the words of its card."""

from __future__ import annotations

from torchcaps.core import Plain, say_truth

from .printed import reading

TRUTH = "partwhole.json"  # in a run folder: what `torchcaps eval RUN --suite partwhole --json` printed
_PLACE = ("group", "condition")  # where in the suite a row belongs


def describe_truth(found: Plain) -> str:
    """What is said of trees and maps against the truth."""
    with reading(TRUTH, printed_by="torchcaps eval RUN --suite partwhole --json prints"):
        (rows,) = found["runs"].values()
        (measured,) = (row for row in rows if row["group"] == "ground truth")
        numbers = {key: float(value) for key, value in measured.items() if key not in _PLACE}
        limit = found["limit"]
        images = "all test images" if limit is None else f"up to {limit:,} test images"
        measured_by = "Measured by `torchcaps eval NAME --suite partwhole` on this one run."
        return f"True trees: {say_truth(numbers, images)} {measured_by}"
