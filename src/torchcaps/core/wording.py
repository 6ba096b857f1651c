"""Sentences and tables that several packages write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def counted(count: int, thing: str) -> str:
    """A number of things, as "1 patient" or "1,200 patients"; `thing` is one of them."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def markdown_table(head: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Rows of cells as a table of Markdown, below the names of its columns; every line ends."""
    lines = (head, ["---"] * len(head), *rows)
    return "".join(f"| {' | '.join(map(str, cells))} |\n" for cells in lines)


def say_truth(found: Mapping[str, float], images: str) -> str:
    """What routing is worth on images whose trees are known, and how carved trees compare with the true ones.

    Args:
        found: Shares, by the names that the suite `partwhole` gives them.
        images: Which ones, as "these 24 images".
    """
    words = f"The network names the right class of {found['accuracy']:.1%} of {images}"
    if "accuracy_with_even" in found:
        words += f", and of {found['accuracy_with_even']:.1%} when all its couplings are made even"
    carved, even, random = (
        f"{found[f'{kind}tree_precision']:.1%} and {found[f'{kind}tree_recall']:.1%}"
        for kind in ("", "even_", "random_")
    )
    is_better = found["tree_precision"] > max(found["even_tree_precision"], found["random_tree_precision"])
    verdict = (
        "Carved trees are more precise than both others."
        if is_better
        else "Carved trees are not more precise than both others: they are not the trees of the parts."
    )
    return (
        f"{words}. Precision and recall of trees, mean over the images: {carved} for carved trees, {even} "
        f"for even couplings and {random} for random trees. {verdict}"
    )
