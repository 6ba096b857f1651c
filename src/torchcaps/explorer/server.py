"""The local server: it answers one user of this machine, and only pages that it served itself."""

from __future__ import annotations

import json
import sys
import traceback
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition
from typing import Any

from torchcaps.core import UserError

from .access import Access
from .page import live_page
from .service import Service
from .shelf import Shelf
from .upload import MOST_BYTES

ADDRESS = "127.0.0.1"
_MOST_BODY = 4 * MOST_BYTES // 3 + (1 << 20)
_MOST_DIGITS = 18  # of a number in a request
_LOCKED = (
    "This page is for the user who started it: open the whole address that torchcaps app printed, "
    "with its token."
)
_NO_POLICY = "default-src 'none'"
_PAGE_POLICY = "frame-ancestors 'none'"  # the page itself holds the rest, so that a file has it too
# pages of given folders hold their scripts in themselves; they get an origin of their own and no network
_FOLDER_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data:; frame-ancestors 'self'"
)


class Explorer(ThreadingHTTPServer):
    """Serves the page of a shelf on 127.0.0.1; port 0 takes any that is free."""

    daemon_threads = True
    allow_reuse_address = sys.platform != "win32"  # there it would share a port that is in use

    def __init__(self, shelf: Shelf, port: int = 0) -> None:
        self.shelf, self.service = shelf, Service(shelf)
        self.page = live_page(shelf.given)
        self._answering, self._is_closed = 0, False
        self._changed = Condition()  # known before the socket is made: where that fails, it is closed at once
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            raise UserError(
                f"port {port} cannot be used ({error.strerror}); choose another: --port 0"
            ) from error
        self.access = Access(self.server_port)

    def answer(self, verb: str, question: dict[str, Any]) -> dict[str, Any]:
        """The answer to a question of the page."""
        with self._changed:
            if self._is_closed:
                raise UserError("The program is ending.")
            self._answering += 1
        try:
            return self.service.answer(verb, question)
        finally:
            with self._changed:
                self._answering -= 1
                self._changed.notify_all()

    def server_close(self) -> None:
        """Listen no more, and wait for answers under way: a thread inside PyTorch would abort the program."""
        super().server_close()
        with self._changed:
            self._is_closed = True
            self._changed.wait_for(lambda: not self._answering)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say what went wrong, but not that a browser went away before it had its answer."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        """Where the page is, for whoever may see it."""
        return f"http://{ADDRESS}:{self.server_port}/?token={self.access.token}"

    @property
    def url_for_once(self) -> str:
        """The same for one visit."""
        return f"http://{ADDRESS}:{self.server_port}/?ticket={self.access.ticket}"

    @property
    def hosts(self) -> tuple[str, str]:
        """The names by which a browser on this machine may ask; another name may be an attack."""
        return f"{ADDRESS}:{self.server_port}", f"localhost:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Explorer
    protocol_version = "HTTP/1.1"
    timeout = 60
    server_version, sys_version = "torchcaps", ""

    def do_GET(self) -> None:
        """The page, or the page of a folder that was given."""
        if self._is_own_name() and self.server.access.opens(self.path):  # from wherever the link was followed
            self._send_page({"Set-Cookie": self.server.access.set_cookie})
            return
        if not self._is_trusted():
            return
        if self.path.partition("?")[0] == "/":  # also with a token of before
            self._send_page({})
            return
        kind, _, number = self.path.removeprefix("/folder/").partition("/")
        try:
            content = self.server.shelf.page(kind, _count(number))
        except (UserError, OSError):
            words = b"There is no such page."
            self._send(HTTPStatus.NOT_FOUND, words, "text/plain; charset=utf-8", _NO_POLICY)
            return
        self._send(HTTPStatus.OK, content, "text/html; charset=utf-8", _FOLDER_POLICY)

    def do_POST(self) -> None:
        """An answer to a question of the page."""
        if not self._is_trusted():
            return
        length = _count(self.headers.get("Content-Length", ""))
        if not 0 <= length <= _MOST_BODY:
            self.close_connection = True  # what was sent is not read
            self._send_json(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                {"error": f"This file is larger than {MOST_BYTES >> 20} MB: choose a smaller one."},
            )
            return
        self._send_json(*self._answered(self.rfile.read(length)))

    def _answered(self, body: bytes) -> tuple[HTTPStatus, dict[str, object]]:
        try:
            return HTTPStatus.OK, self.server.answer(self.path.removeprefix("/api/"), _question(body))
        except UserError as error:
            return HTTPStatus.BAD_REQUEST, {"error": str(error)}
        except Exception as error:  # the page says that it failed; the terminal says where
            traceback.print_exc()
            return HTTPStatus.INTERNAL_SERVER_ERROR, {
                "error": f"The program failed ({type(error).__name__}); the terminal shows where."
            }

    def _is_own_name(self) -> bool:
        return self.headers.get("Host") in self.server.hosts

    def _is_trusted(self) -> bool:
        """Whether our own page asks, by our own name, in a browser that was let in."""
        origin = self.headers.get("Origin")
        is_ours = origin is None or origin in {f"http://{host}" for host in self.server.hosts}
        is_json = self.command != "POST" or self.headers.get("Content-Type") == "application/json"
        is_same_site = self.headers.get("Sec-Fetch-Site", "none") in ("none", "same-origin")
        if not (self._is_own_name() and is_ours and is_json and is_same_site):
            self._refuse("This page answers only itself, on this machine.")
            return False
        if not self.server.access.knows(self.headers.get("Cookie", "")):
            self._refuse(_LOCKED)
            return False
        return True

    def _refuse(self, words: str) -> None:
        self.close_connection = True
        if self.command == "POST":
            self._send_json(HTTPStatus.FORBIDDEN, {"error": words})
        else:
            self._send(HTTPStatus.FORBIDDEN, words.encode(), "text/plain; charset=utf-8", _NO_POLICY)

    def _send_page(self, headers: dict[str, str]) -> None:
        content = self.server.page.encode()
        self._send(HTTPStatus.OK, content, "text/html; charset=utf-8", _PAGE_POLICY, headers)

    def _send_json(self, status: HTTPStatus, answer: dict[str, object]) -> None:
        self._send(status, json.dumps(answer, allow_nan=False).encode(), "application/json", _NO_POLICY)

    def _send(
        self, status: HTTPStatus, content: bytes, kind: str, policy: str, more: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Content-Security-Policy": policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
            **(more or {}),
        }
        for name, value in headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the terminal is for what matters."""


def _count(digits: str) -> int:
    """A number in a request; -1 for what is none, or longer than any that makes sense."""
    return int(digits) if digits.isdecimal() and len(digits) <= _MOST_DIGITS else -1


def _question(body: bytes) -> dict[str, Any]:
    try:
        question = json.loads(body)
    except (ValueError, RecursionError):  # no JSON, or a number without end
        question = None
    if not isinstance(question, dict):
        raise UserError("A question is a JSON object.")
    return question
