"""Who may see the page: a browser that was shown the address, not every user of the same machine."""

from __future__ import annotations

from hmac import compare_digest
from secrets import token_urlsafe
from threading import Lock
from urllib.parse import parse_qs

_BYTES = 32


class Access:
    """A random token, which the address carries once and a cookie afterwards.

    The ticket is for the address that the program opens itself: other users can read the command line of the
    browser, so it lets in one visitor, the first.

    Args:
        port: Cookies do not know ports, so the name of this one does.
    """

    def __init__(self, port: int) -> None:
        self.token = token_urlsafe(_BYTES)
        self.ticket = token_urlsafe(_BYTES)
        self._is_used = False
        self._lock = Lock()
        self._name = f"torchcaps-{port}"

    @property
    def cookie(self) -> str:
        """What the browser sends from its second request on."""
        return f"{self._name}={self.token}"

    @property
    def set_cookie(self) -> str:
        """The header that gives it: no script reads it, and no other site makes a browser send it."""
        return f"{self.cookie}; HttpOnly; SameSite=Strict; Path=/"

    def opens(self, path: str) -> bool:
        """Whether an address is that of the page with the token, or with the ticket for the first time."""
        place, _, query = path.partition("?")
        given = parse_qs(query) if place == "/" else {}
        if any(_is_equal(text, self.token) for text in given.get("token", [])):
            return True
        return any(_is_equal(text, self.ticket) for text in given.get("ticket", [])) and self._use()

    def knows(self, cookies: str) -> bool:
        """Whether the token is among the cookies of a request."""
        return any(_is_equal(each.strip(), self.cookie) for each in cookies.split(";"))

    def _use(self) -> bool:
        with self._lock:
            is_first, self._is_used = not self._is_used, True
            return is_first


def _is_equal(given: str, wanted: str) -> bool:
    """Compare in constant time, which does not tell where two texts differ."""
    return compare_digest(given.encode(), wanted.encode())
