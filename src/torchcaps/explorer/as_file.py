"""The explorer as one HTML file, with the answers for some images inside: to be sent to a colleague."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from torchcaps.core import UserError
from torchcaps.layers import ConvDecoder, FcDecoder
from torchcaps.parse import Explainer, Source
from torchcaps.storage import write_text
from torchcaps.train import is_numbered

from .embedded import embed_decoder, round_decoder, rounding_error
from .page import file_page
from .subject import (
    Covering,
    Look,
    Reference,
    Subject,
    say_rounded,
    view_cover,
    view_earlier,
    view_look,
    view_sheet,
    view_typical,
)

MOST_BYTES = 10_000_000
_MOST_ERROR = 1 / 255  # of a drawing, from rounding the decoder: one tone
_MARK = b"<title>torchcaps explorer"


def write_explorer(
    explainer: Explainer,
    names: Sequence[str],
    path: Path,
    on_unreadable: Callable[[str, UserError], None] | None = None,
) -> int:
    """Write the page of images, named as `torchcaps explain` takes them, and return its size in bytes.

    Those that cannot be read are told to `on_unreadable`, and raise without it. There is no page of none.
    """
    if path.exists() and _MARK not in path.read_bytes():
        raise UserError(f"{path} was not written by explain and is kept; choose another --out")
    run = explainer.run
    subject = Subject(run, f"{run.folder.resolve().name}: {run.recipe.model['name']}", explainer.data_dir)
    sources = explainer.read_all(names, on_unreadable)
    if not sources:
        return 0
    looks = [subject.look(source.image) for source in sources]
    text = _page(subject, Reference(subject, explainer.levels), sources, looks)
    size = len(text.encode())
    if size > MOST_BYTES:
        raise UserError(
            f"{len(sources)} images make a page of {size / 1e6:.1f} MB, and it may have "
            f"{MOST_BYTES / 1e6:.0f}: give fewer, about {max(1, int(len(sources) * MOST_BYTES / size))}"
        )
    write_text(path, text)
    return size


def _page(subject: Subject, reference: Reference, sources: Sequence[Source], looks: Sequence[Look]) -> str:
    """The page with the decoder, so that sliders combine; if that is too large, with pictures of each."""
    views = [_view(subject, reference, source, look) for source, look in zip(sources, looks, strict=True)]
    decoder = subject.run.model.decoder
    if decoder is None:
        return file_page(subject.title, views)
    sheets = [subject.perturb(look) for look in looks]
    inside = _embedded(decoder, looks, sheets)
    if inside is not None:
        text = file_page(subject.title, views, decoder=inside)
        if len(text.encode()) <= MOST_BYTES:
            return text
    for view, sheet in zip(views, sheets, strict=True):
        view["capsule"]["sheet"] = view_sheet(sheet)
    return file_page(subject.title, views)


def _embedded(decoder: nn.Module, looks: Sequence[Look], sheets: Sequence[Tensor]) -> dict[str, Any] | None:
    """The decoder for the page, or None if the page would draw otherwise than the network."""
    if not isinstance(decoder, FcDecoder | ConvDecoder):
        return None  # a decoder of the user: the page can run ours alone
    rounded = round_decoder(decoder)
    error = max(rounding_error(rounded, *each) for each in zip(looks, sheets, strict=True))
    if not error <= _MOST_ERROR:
        return None
    return {**embed_decoder(rounded), "words": say_rounded(error)}


def _covered(subject: Subject, image: Tensor, winner: int) -> Covering:
    while not (covering := subject.cover(image, winner)).is_done:
        pass
    return covering


def _say_prepared(source: Source) -> str:
    if is_numbered(source.name):
        return "taken as it is"
    return source.preparation or f"brought to {source.image.shape[-1]}x{source.image.shape[-2]} px"


def _view(subject: Subject, reference: Reference, source: Source, look: Look) -> dict[str, Any]:
    hint = "" if is_numbered(source.name) else subject.hint(source.image)
    view = view_look(look, subject, label=source.label, prepared=_say_prepared(source), hint=hint)
    view["name"] = source.name
    view["earlier"] = []
    if look.last is not None:
        view["earlier"] = view_earlier(source.image, look.winner, subject, source.label)
    view["cover"] = view_cover(_covered(subject, source.image, look.winner))
    reference.wait()
    if reference.obstacle:
        view["typical"] = {"state": "unknown", "words": f"Not known: {reference.obstacle}."}
    else:
        view["typical"] = view_typical(reference.compare(source.image), subject, reference)
    return view
