"""Where the files of a pretrained network are, fetched where they are missing and always verified."""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.request
from pathlib import Path
from typing import Any

from torchcaps.core import MissingDataError, UserError
from torchcaps.storage import checksum_of, write_bytes

from .entry import PACKAGED, Entry, cache_folder

ADDRESS = "TORCHCAPS_WEIGHTS_URL"  # environment variable: where files lie that are too large for the package
_MOST_BYTES = 512 * 2**20  # of one file


def entry_folder(entry: Entry) -> Path:
    """The folder that holds all files of a network, each with its checksum; missing ones are an error."""
    folder = _whole_folder(entry)
    if folder is None:
        raise MissingDataError(
            f"the files of {entry.name} are not here; fetch them: torchcaps weights get {entry.name}"
        )
    fetch_again = f"fetch it again: torchcaps weights get {entry.name}"
    advice = "install torchcaps again" if folder.parent == PACKAGED else fetch_again
    for name, expected in entry.sha256.items():
        if checksum_of(folder / name) != expected:
            raise UserError(f"{folder / name} is damaged: its checksum is not the published one; {advice}")
    return folder


def is_here(entry: Entry) -> bool:
    """Whether all files of a network are on this machine."""
    return _whole_folder(entry) is not None


def _whole_folder(entry: Entry) -> Path | None:
    places = (PACKAGED / entry.name, cache_folder() / entry.name)
    return next((place for place in places if all((place / name).is_file() for name in entry.sha256)), None)


def get_weights(entry: Entry) -> Path:
    """The folder of a network; what is missing is fetched from the configured address and verified."""
    try:
        return entry_folder(entry)
    except UserError:  # missing, or damaged where it was fetched to
        if _whole_folder(entry) == PACKAGED / entry.name:
            raise
    address = os.environ.get(ADDRESS, "").rstrip("/")
    if not address.startswith("https://"):
        raise UserError(
            f"{entry.name} is not part of the package; set {ADDRESS} to the https address its files lie at"
        )
    folder = cache_folder() / entry.name
    for name, expected in entry.sha256.items():
        if not (folder / name).is_file() or checksum_of(folder / name) != expected:
            content = _fetch(f"{address}/{entry.name}/{name}")
            if hashlib.sha256(content).hexdigest() != expected:
                raise UserError(f"{address}/{entry.name}/{name} is not the published file: wrong checksum")
            write_bytes(folder / name, content)
    return entry_folder(entry)


class _StaysSecure(urllib.request.HTTPRedirectHandler):
    """Follows an answer that names another address, unless that is not https."""

    def redirect_request(self, *asked: Any) -> urllib.request.Request | None:
        if not asked[-1].startswith("https://"):
            raise UserError(f"it leads on to {asked[-1]}, which is no https address; set {ADDRESS} to one")
        return super().redirect_request(*asked)


def _fetch(url: str) -> bytes:
    try:
        with urllib.request.build_opener(_StaysSecure).open(url, timeout=60) as answer:
            content: bytes = answer.read(_MOST_BYTES + 1)
            announced = int(answer.headers.get("Content-Length") or 0)
    except (OSError, http.client.HTTPException, ValueError) as error:  # also what is no answer or address
        raise UserError(f"{url} could not be fetched: {error}") from error
    if len(content) > _MOST_BYTES:
        raise UserError(f"{url} is larger than {_MOST_BYTES // 2**20} MB and was not fetched")
    if len(content) < announced:
        raise UserError(f"{url} ended after {len(content):,} of {announced:,} bytes; fetch it again")
    return content
