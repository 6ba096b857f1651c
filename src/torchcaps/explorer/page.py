"""The one page of the explorer: live in front of the server, or a file with its answers inside."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from html import escape
from string import Template
from typing import Any

from torchcaps.viz import read_template, to_script

from .given import Given
from .tabs import describe_tabs

_SCRIPTS = ("ask.js", "picture.js", "decode.js", "capsule.js", "panel.js", "tabs.js", "start.js")


def live_page(given: Given) -> str:
    """The page that asks its server; runs that the user named are compared at once where there are two."""
    data = {
        "live": True,
        "models": [
            {"key": each.key, "title": each.title, "rem": each.has_rem, "pictures": each.pictures}
            for each in given.choices
        ],
        "compare": given.first >= 2,
        "tabs": describe_tabs(given),
    }
    return _fill(data, connect="'self'", title="torchcaps explorer")


def file_page(title: str, looks: list[dict[str, Any]], *, decoder: dict[str, Any] | None = None) -> str:
    """The page of one network that makes no request: it holds answers for some images, and the decoder."""
    models = [{"key": "0", "title": title}]
    data = {"live": False, "models": models, "looks": looks, "decoder": decoder, "tabs": []}
    return _fill(data, connect="'none'", title=f"torchcaps explorer: {title}")


def _fill(data: dict[str, Any], *, connect: str, title: str) -> str:
    script = read_template("tree.js") + "".join(map(_read, _SCRIPTS))
    return Template(_read("explorer.html")).substitute(
        policy=escape(_policy(script, connect)),
        title=escape(title),
        style=read_template("report.css") + read_template("tree.css") + _read("explorer.css"),
        data=to_script(data),
        script=script,
    )


def _policy(script: str, connect: str) -> str:
    """No request to another machine, and no script but the one of this page, known by its checksum."""
    checksum = b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    rules = {
        "default-src": "'none'",
        "script-src": f"'sha256-{checksum}'",
        "style-src": "'unsafe-inline'",
        "img-src": "data: blob:",
        "connect-src": connect,
        "frame-src": connect,
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _read(name: str) -> str:
    return read_template(name, __package__)
