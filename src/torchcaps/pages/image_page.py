"""The page of one image: prediction, parse tree, saliency, perturbations, and how typical the tree is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from torchcaps.parse import OFFSETS, Contributions, Explanation, ReceptiveField, rank_in_words
from torchcaps.viz import Report, draw_evidence, draw_perturbations, draw_surprise, draw_tree, tree_markup

_ABOUT_DECODER = (
    "The winning capsule decoded back into an image, one of its numbers changed at a time by the amount "
    "above the column: the six that change the image most."
)


def draw_all(found: Explanation, classes: Sequence[str]) -> dict[str, Any]:
    """The drawings that this network can give, by name."""
    figures = {
        "tree": draw_tree(
            found.shown, found.tree, field=_field(found), class_names=classes, label=found.source.label
        )
    }
    saliency = draw_saliency([found], classes)
    if saliency is not None:
        figures["saliency"] = saliency
    if found.perturbed is not None:
        figures["perturbations"] = draw_perturbations(found.perturbed, OFFSETS, most=6)
    if found.usual is not None and found.usual.share is not None:
        figures["typicality"] = draw_surprise(found.usual.surprise, found.usual.others)
    return figures


def draw_saliency(explained: Sequence[Explanation], classes: Sequence[str]) -> Any:
    """A column for each image, or None for a network whose capsules have no place on it."""
    evidence = [found.evidence.image for found in explained if found.evidence is not None]
    contribution = [found.contribution.image for found in explained if found.contribution is not None]
    labels = [found.source.label for found in explained if found.source.label is not None]
    if len(evidence) < len(explained):
        return None
    return draw_evidence(
        torch.stack([found.shown for found in explained]),
        torch.stack(evidence),
        torch.stack([found.activations for found in explained]),
        contribution=torch.stack(contribution) if contribution else None,
        labels=torch.tensor(labels) if len(labels) == len(explained) else None,
        class_names=classes,
    )


def _field(found: Explanation) -> ReceptiveField | None:
    return found.maps[0].field if len(found.maps) == 1 else None


def build_page(
    found: Explanation, classes: Sequence[str], drawings: dict[str, Any], findings: Sequence[str] = ()
) -> Report:
    """The page of one image; findings are those of the health monitor after the last epoch."""
    winner = int(found.activations.argmax())
    name = classes[found.tree.chosen]
    report = Report(f"Why {classes[winner]}?", _verdict(found, classes))
    report.numbers(
        {
            "predicted": classes[winner],
            "activation": f"{float(found.activations[winner]):.3f}",
            "runner-up": _runner_up(found, classes),
            "votes against": _against(found),
            "capsules in the tree": f"{found.tree.capsules_in_tree[0]:,} of {found.tree.layer_sizes[0]:,}",
            "stranger than": _rank(found),
        }
    )
    report.section("Where it looked", _about_maps(found, name), drawings.get("saliency"))
    report.insert("The parse tree", _about_tree(found, name), _tree(found, classes))
    report.section("How typical it is", _about_typicality(found, name), drawings.get("typicality"))
    report.arrange_around()
    if findings:
        rows = [finding.partition(": ") for finding in findings]
        report.section(
            "The health of this network",
            "What the health monitor found after the last epoch of its training.",
            table=[{"found": problem, "details": details} for problem, _, details in rows],
        )
    if "perturbations" in drawings:
        report.section("What its numbers change", _ABOUT_DECODER, drawings["perturbations"])
    return report


def _tree(found: Explanation, classes: Sequence[str]) -> str:
    return tree_markup(
        found.shown,
        found.tree,
        field=_field(found),
        class_names=classes,
        label=found.source.label,
        shares=None if found.contributions is None else found.contributions.shares[0],
    )


def _runner_up(found: Explanation, classes: Sequence[str]) -> str:
    second = found.runner_up
    return "none" if second is None else f"{classes[second]}, {float(found.activations[second]):.3f}"


def _against(found: Explanation) -> str:
    return "not known" if found.contributions is None else f"{float(found.contributions.against):.0%}"


def _verdict(found: Explanation, classes: Sequence[str]) -> str:
    winner = int(found.activations.argmax())
    truth = "" if found.source.label is None else f"; it is {classes[found.source.label]}"
    verdict = f"{found.source.name}: the network reads {classes[winner]}{truth}."
    if found.tree.chosen != winner:
        rounded = classes[found.tree.chosen]
        verdict += f" With couplings rounded to a few levels it reads {rounded}, and so does this page."
    if found.hint:
        verdict += f" If {found.hint}"
    if found.source.preparation is not None:
        verdict += f" What was done to the photograph: {found.source.preparation}."
    return verdict


def _rank(found: Explanation) -> str:
    if found.usual is None or found.usual.share is None:
        return "not known"
    return f"{rank_in_words(found.usual.share, len(found.usual.others))} images"


def _about_tree(found: Explanation, name: str) -> str:
    if not found.tree.edges:
        return f"There is none: rounded to a few levels, no coupling to {name} exceeds an equal share."
    return (
        "Each capsule divides its vote among the capsules above; the shares are its couplings. Drawn are the "
        f"capsules whose couplings, rounded to a few levels, lead most strongly to {name}. Orange lines are "
        "couplings to the class, blue ones to others. The tab key steps through the capsules."
    )


def _about_maps(found: Explanation, name: str) -> str:
    """Both maps, and how much of the length of the class capsule speaks against it."""
    if found.evidence is None:
        places = (
            "There is no map: each capsule of this network sees the whole image. torchcaps app covers places "
            "of the image and shows which of them matter."
        )
    elif not found.evidence.peak:
        places = f"The map is empty: rounded to a few levels, no active capsule has a coupling to {name}."
    else:
        places = (
            f"Saliency marks where active capsules give their votes to {name}; its strongest place has "
            f"{found.evidence.peak:.2f} times the mean."
        )
    if found.contributions is None:
        return f"{places} There are no contributions: {found.contribution_obstacle}."
    length = say_length(found.contributions, name)
    if found.contribution is None:
        return f"{places} {length}"
    peak = found.contribution.peak
    strongest = f"its strongest place has {peak:.2f} times the mean" if peak else "no place does"
    return f"{places} Contribution marks where votes make the capsule of {name} longer; {strongest}. {length}"


def say_length(found: Contributions, name: str) -> str:
    """What votes and bias make of the length of the class capsule of one image."""
    votes = (
        f"Votes for {name} add {float(found.in_favour):.0%} of its length, votes against it take away "
        f"{float(found.against):.0%}"
    )
    if not found.bias.any():
        return f"{votes}."
    return f"{votes}, and its bias adds {float(found.bias / found.length.clamp(min=1e-12)):z.0%}."


def _about_typicality(found: Explanation, name: str) -> str:
    usual = found.usual
    if usual is None:
        return (
            "Not known: the images that the network learnt from are not here; --data-dir says where they are."
        )
    if usual.share is None:
        split = "validation" if math.isfinite(usual.surprise) else "training"
        return f"Not known: no {split} image that was looked at was read as {name}."
    rank = rank_in_words(usual.share, len(usual.others))
    subject = "This tree is" if found.tree.edges else "Its couplings are"
    return (
        f"{subject} stranger than {rank} validation images read as {name}. They are ordered by surprise: "
        f"the fewer training images read as {name} have couplings like these, the greater it is. Here it is "
        f"{usual.surprise:.1f} bits with each child judged alone, {usual.key_surprise:.1f} as a whole."
    )
