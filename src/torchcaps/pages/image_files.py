"""Explained images as files: a page, drawings and data for each, and a page that leads to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from os import fsencode
from pathlib import Path
from typing import Any
from urllib.parse import quote

from torchcaps.core import UserError
from torchcaps.parse import Explainer, Explanation
from torchcaps.storage import distinct_stems, write_bytes, write_json, write_text
from torchcaps.train import Run
from torchcaps.viz import Report, to_png, to_svg

from .image_page import build_page, draw_all, draw_saliency

_MOST_COLUMNS = 8  # of the overview
_INDEX = "index"  # the page that leads to the others
_DRAWINGS = ("tree", "saliency", "perturbations", "typicality")
_TITLE = "Explained images"
_MARKS = {".json": b'"capsules_in_tree"', ".html": _TITLE.encode()}  # in files that explain wrote


def explain_images(
    explainer: Explainer,
    names: Sequence[str],
    out: Path,
    on_image: Callable[[int, int], None] = lambda done, planned: None,
    on_unreadable: Callable[[str, UserError], None] | None = None,
) -> list[dict[str, Any]]:
    """Write a page, drawings and JSON for each image; return a row of plain data for each, with its files.

    Args:
        explainer: The run that is asked.
        names: As `Explainer.read` takes them.
        out: Folder for the files.
        on_image: Is told how many images are done.
        on_unreadable: Is told of images that cannot be read, which are left out; without it they raise.
    """
    on_image(0, len(names))  # reading photographs takes seconds
    sources = explainer.read_all(names, on_unreadable)  # before any work
    classes = explainer.info.classes
    stems = distinct_stems([source.name for source in sources], reserved=[_INDEX])
    for stem in stems:
        _keep_foreign(out, stem)
    if len(stems) > 1:
        _keep_foreign(out, _INDEX)
    findings = _last_findings(explainer.run)
    rows: list[dict[str, Any]] = []
    first: list[Explanation] = []  # all of them would take megabytes an image
    for stem, source in zip(stems, sources, strict=True):
        found = explainer.explain(source)
        first += [found] if len(first) < _MOST_COLUMNS else []
        data, drawings = found.as_json(classes), draw_all(found, classes)
        # built before anything is written: an image gets all of its files or none
        page = build_page(found, classes, drawings, findings)
        write_json(out / f"{stem}.json", data)
        files = [out / f"{stem}.json", *_write_drawings(drawings, out, f"{stem}-")]
        files.append(page.save(out / f"{stem}.html"))
        rows.append({**data, "files": [str(path) for path in files]})
        on_image(len(rows), len(sources))
    if len(rows) > 1:
        overview = draw_saliency(first, classes)
        _write_drawings({} if overview is None else {"overview": overview}, out, "")
        _build_index(rows, stems, overview).save(out / f"{_INDEX}.html")
    return rows


def _keep_foreign(out: Path, stem: str) -> None:
    """Raise where a file of the user would be overwritten: one that stands beside no data of explain."""
    if stem == _INDEX:
        ours, names = out / "index.html", ["index.html", "overview.png", "overview.svg"]
    else:
        drawings = [f"{stem}-{name}.{kind}" for name in _DRAWINGS for kind in ("png", "svg")]
        ours, names = out / f"{stem}.json", [f"{stem}.json", f"{stem}.html", *drawings]
    there = [out / name for name in names if (out / name).exists()]
    if there and not (ours.is_file() and _MARKS[ours.suffix] in ours.read_bytes()):
        raise UserError(f"{there[0]} was not written by explain and is kept; choose another --out")


def _last_findings(run: Run) -> list[str]:
    """What the health monitor found after the last epoch; a run that came without its metrics has none."""
    has_metrics = (run.folder / "metrics.jsonl").is_file()
    rows = run.metrics if has_metrics else []
    return rows[-1].get("findings", []) if rows else []


def _build_index(rows: Sequence[dict[str, Any]], stems: Sequence[str], overview: Any) -> Report:
    """A page that leads to those of the images."""
    report = Report(_TITLE, f"{len(rows)} images, each with a page of its own")
    lines = "".join(
        f'<tr><td><a href="{quote(fsencode(stem))}.html">{escape(row["image"])}</a></td>'
        f"<td>{escape(row['class'])}</td><td>{row['activation']:.3f}</td></tr>"
        for row, stem in zip(rows, stems, strict=True)
    )
    head = "<thead><tr><th>image</th><th>class</th><th>activation</th></tr></thead>"
    report.insert("Images", "", f'<div class="scroll"><table>{head}<tbody>{lines}</tbody></table></div>')
    if overview is not None:
        is_whole = len(rows) <= _MOST_COLUMNS
        which = "As on the page of each image" if is_whole else f"The first {_MOST_COLUMNS} images"
        report.section("Where the network looked", f"{which}, side by side.", overview)
    return report


def _write_drawings(figures: dict[str, Any], out: Path, prefix: str) -> list[Path]:
    files = []
    for name, figure in figures.items():
        picture, text = to_png(figure), to_svg(figure)
        paths = [out / f"{prefix}{name}.png", out / f"{prefix}{name}.svg"]
        write_bytes(paths[0], picture)
        write_text(paths[1], text)
        files += paths
    return files
