"""The explorer as one HTML file, with the answers for some images inside: to be sent to a colleague."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from torchcaps.core import UserError
from torchcaps.parse import Explainer, Source
from torchcaps.storage import write_text

from .page import file_page
from .reference import Reference
from .subject import Subject
from .views import heat_uri, view_look, view_sheet, view_typical

MOST_BYTES = 10_000_000
_MARK = b"<title>torchcaps explorer"


def write_explorer(explainer: Explainer, names: Sequence[str], path: Path) -> int:
    """Write the page of images, named as `torchcaps explain` takes them; its size in bytes."""
    if path.exists() and _MARK not in path.read_bytes():
        raise UserError(f"{path} was not written by explain and is kept; choose another --out")
    run = explainer.run
    subject = Subject(run, f"{run.folder.resolve().name}: {run.recipe.model['name']}", explainer.data_dir)
    sources = [explainer.read(name) for name in names]
    reference = Reference(subject)
    looks = [_view(subject, reference, source) for source in sources]
    text = file_page(subject.title, looks)
    size = len(text.encode())
    if size > MOST_BYTES:
        raise UserError(
            f"{len(names)} images make a page of {size / 1e6:.1f} MB, and it may have "
            f"{MOST_BYTES / 1e6:.0f}: give fewer, about {max(1, int(len(names) * MOST_BYTES / size))}"
        )
    write_text(path, text)
    return size


def _covered(subject: Subject, image: Tensor, winner: int) -> Tensor:
    while not (covering := subject.cover(image, winner)).is_done:
        pass
    return covering.heat()


def _view(subject: Subject, reference: Reference, source: Source) -> dict[str, Any]:
    look = subject.look(source.image)
    view = view_look(look, subject, label=source.label, prepared="taken as it is")
    view["name"] = source.name
    view["cover"] = heat_uri(_covered(subject, source.image, look.winner))
    if look.perturbed is not None:
        view["capsule"]["sheet"] = view_sheet(look.perturbed)
    reference.wait()
    if reference.obstacle:
        view["typical"] = {"state": "unknown", "words": f"Not known: {reference.obstacle}."}
    else:
        view["typical"] = view_typical(reference.compare(source.image), subject, reference)
    return view
