"""A page for each image: prediction, parse tree, saliency, perturbations, and how typical the tree is."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import chain, count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import torch

from torchcaps.core import UserError
from torchcaps.parse import OFFSETS, Explainer, Explanation
from torchcaps.storage import write_atomically, write_json, write_text
from torchcaps.train import Run
from torchcaps.viz import (
    Report,
    draw_evidence,
    draw_perturbations,
    draw_surprise,
    draw_tree,
    to_png,
    to_svg,
    tree_markup,
)

_MOST_COLUMNS = 8  # of the overview
_INDEX = "index"  # the page that leads to the others
_DRAWINGS = ("tree", "saliency", "perturbations", "typicality")
_TITLE = "Explained images"
_ABOUT_DECODER = (
    "The winning capsule decoded back into an image, one of its numbers changed at a time by the amount "
    "above the column: the six that change the image most."
)
_MARKS = {".json": b'"capsules_in_tree"', ".html": _TITLE.encode()}  # in files that explain wrote


def explain_images(explainer: Explainer, names: Sequence[str], out: Path) -> list[dict[str, Any]]:
    """Write a page, drawings and JSON for each image; one row of plain data for each, with its files."""
    sources = [explainer.read(name) for name in names]  # an unreadable one is an error before any work
    classes, stems = explainer.info.classes, _stems(names)
    for stem in stems:
        _keep_foreign(out, stem)
    if len(stems) > 1:
        _keep_foreign(out, _INDEX)
    explained = [explainer.explain(source) for source in sources]
    findings = _last_findings(explainer.run)
    rows = []
    for stem, found in zip(stems, explained, strict=True):
        data, drawings = found.as_json(classes), draw_all(found, classes)
        page = build_page(
            found, classes, drawings, findings
        )  # before writing: an image gets all of its files or none
        write_json(out / f"{stem}.json", data)
        files = [out / f"{stem}.json", *_write_drawings(drawings, out, f"{stem}-")]
        files.append(page.save(out / f"{stem}.html"))
        rows.append({**data, "files": [str(path) for path in files]})
    if len(rows) > 1:
        overview = _draw_saliency(explained[:_MOST_COLUMNS], classes)
        _write_drawings({} if overview is None else {"overview": overview}, out, "")
        _build_index(rows, stems, overview).save(out / f"{_INDEX}.html")
    return rows


def _keep_foreign(out: Path, stem: str) -> None:
    """Raise where a file of the user would be overwritten: one that stands beside no data of explain."""
    if stem == _INDEX:
        ours, names = out / "index.html", ["index.html", "overview.png", "overview.svg"]
    else:
        ours, endings = (
            out / f"{stem}.json",
            [f"{name}.{kind}" for name in _DRAWINGS for kind in ("png", "svg")],
        )
        names = [f"{stem}.json", f"{stem}.html", *(f"{stem}-{ending}" for ending in endings)]
    there = [out / name for name in names if (out / name).exists()]
    if there and not (ours.is_file() and _MARKS[ours.suffix] in ours.read_bytes()):
        raise UserError(f"{there[0]} was not written by explain and is kept; choose another --out")


def _last_findings(run: Run) -> list[str]:
    """What the health monitor found after the last epoch; a run that came without its metrics has none."""
    has_metrics = (run.folder / "metrics.jsonl").is_file()
    rows = run.metrics if has_metrics else []
    return rows[-1].get("findings", []) if rows else []


def draw_all(found: Explanation, classes: Sequence[str]) -> dict[str, Any]:
    """The drawings that this network can give, by name."""
    figures = {
        "tree": draw_tree(
            found.shown, found.tree, field=_field(found), class_names=classes, label=found.source.label
        )
    }
    saliency = _draw_saliency([found], classes)
    if saliency is not None:
        figures["saliency"] = saliency
    if found.perturbed is not None:
        figures["perturbations"] = draw_perturbations(found.perturbed, OFFSETS, most=6)
    if found.usual is not None and found.usual.share is not None:
        figures["typicality"] = draw_surprise(found.usual.surprise, found.usual.others)
    return figures


def _draw_saliency(explained: Sequence[Explanation], classes: Sequence[str]) -> Any:
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


def _build_index(rows: Sequence[dict[str, Any]], stems: Sequence[str], overview: Any) -> Report:
    """A page that leads to those of the images."""
    report = Report(_TITLE, f"{len(rows)} images, each with a page of its own")
    lines = "".join(
        f'<tr><td><a href="{quote(stem)}.html">{escape(row["image"])}</a></td><td>{escape(row["class"])}</td>'
        f"<td>{row['activation']:.3f}</td></tr>"
        for row, stem in zip(rows, stems, strict=True)
    )
    head = "<thead><tr><th>image</th><th>class</th><th>activation</th></tr></thead>"
    report.insert("Images", "", f'<div class="scroll"><table>{head}<tbody>{lines}</tbody></table></div>')
    if overview is not None:
        report.section("Where the network looked", "As on the page of each image, side by side.", overview)
    return report


def _field(found: Explanation) -> Any:
    return found.maps[0].field if len(found.maps) == 1 else None


def _write_drawings(figures: dict[str, Any], out: Path, prefix: str) -> list[Path]:
    files = []
    for name, figure in figures.items():
        picture, text = to_png(figure), to_svg(figure)
        paths = [out / f"{prefix}{name}.png", out / f"{prefix}{name}.svg"]
        write_atomically(paths[0], lambda draft, picture=picture: draft.write_bytes(picture))  # type: ignore[misc]
        write_text(paths[1], text)
        files += paths
    return files


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
            "speaks against": _against(found),
            "in the tree": f"{found.tree.capsules_in_tree[0]:,} of {found.tree.layer_sizes[0]:,}",
            "stranger than": _rank(found),
        }
    )
    report.section("Where it looked", _about_maps(found, name), drawings.get("saliency"))
    report.insert(
        "The parse tree",
        _about_tree(found, name),
        tree_markup(
            found.shown,
            found.tree,
            field=_field(found),
            class_names=classes,
            label=found.source.label,
            shares=_shares(found),
        ),
    )
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
        report.section("What its dimensions mean", _ABOUT_DECODER, drawings["perturbations"])
    return report


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
        verdict += f" With quantized couplings it reads {classes[found.tree.chosen]}, and so does this page."
    return verdict


def _rank(found: Explanation) -> str:
    if found.usual is None or found.usual.share is None:
        return "not known"
    return f"{found.usual.share:.0%} of {len(found.usual.others):,}"


def _about_tree(found: Explanation, name: str) -> str:
    if not found.tree.edges:
        return f"There is none: once quantized, no coupling to {name} exceeds an equal share."
    return (
        f"The capsules whose couplings, quantized, lead most strongly to {name}. Orange lines are couplings "
        "to the class, blue ones to others. The tab key steps through the capsules."
    )


def _about_maps(found: Explanation, name: str) -> str:
    """Both maps, and how much of the length of the class capsule speaks against it."""
    if found.evidence is None:
        places = "The capsules have no place on the image: the tree shows them."
    elif not found.evidence.peak:
        places = f"The map is empty: once quantized, no active capsule has a coupling to {name}."
    else:
        places = (
            "Saliency: activation times coupling to the class; its strongest place has "
            f"{found.evidence.peak:.2f} times the mean."
        )
    if found.contributions is None:
        return f"{places} There are no contributions: {found.contribution_obstacle}."
    against = f"Votes against {name} take away {float(found.contributions.against):.0%} of its length."
    if found.contribution is None:
        return f"{places} {against}"
    peak = f"{found.contribution.peak:.2f} times the mean" if found.contribution.peak else "nothing positive"
    return f"{places} Contribution: what votes add to the length of {name}; strongest place {peak}. {against}"


def _shares(found: Explanation) -> Any:
    """What each child of the classes adds to the length of the winner, of that length."""
    if found.contributions is None:
        return None
    return found.contributions.parts[0] / found.contributions.length.clamp(min=1e-12)


def _about_typicality(found: Explanation, name: str) -> str:
    usual = found.usual
    if usual is None:
        return "Not known: the data that the network was trained on is not available for comparison."
    if usual.share is None:
        return f"Not known: no validation image was read as {name}."
    return (
        f"This tree carries {usual.surprise:.0f} bits of surprise, judged by the couplings of training "
        f"images read as {name}, child by child; as a whole {usual.key_surprise:.1f} bits. It is stranger "
        f"than {usual.share:.0%} of the {len(usual.others)} validation images read as {name}."
    )


def _stems(names: Sequence[str]) -> list[str]:
    """A file name for each image, without its ending; one that is taken gets a number.

    Large and small letters count as the same, since they do on some disks.
    """
    stems: list[str] = []
    taken = {_INDEX}
    for name in names:
        stem = Path(name).stem.replace(":", "-")
        candidates = chain([stem], (f"{stem}~{number}" for number in count(2)))
        stems.append(next(candidate for candidate in candidates if candidate.casefold() not in taken))
        taken.add(stems[-1].casefold())
    return stems
