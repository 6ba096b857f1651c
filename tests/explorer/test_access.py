"""Who may see the page of the explorer."""

import pytest
from explorer.conftest import EXAMPLE, get, start

from torchcaps.explorer.access import Access

LOCKED = "open the whole address that torchcaps app printed"


@pytest.mark.parametrize(
    "cookie",
    ["", "torchcaps", "{name}=", "{name}=wrong", "{name}={token}x", "other={token}", "{name}=\xe9"],
)
def test_who_does_not_have_the_token_gets_one_sentence(server, ask, cookie):
    name, _, token = server.access.cookie.partition("=")
    given = cookie.format(name=name, token=token)
    for path in (
        "/",
        "/folder/flight/0",
        "/?token=wrong",
        "/?token=",
        "/?ticket=wrong",
        "//[",
        "/?token=%ff",
    ):
        reply, content = get(server, path, Cookie=given)
        assert reply.status == 403
        assert LOCKED in content
        assert reply.headers["Set-Cookie"] is None
        assert token not in content
    status, answer = ask("look", EXAMPLE, Cookie=given)
    assert status == 403
    assert LOCKED in answer["error"]


def test_the_printed_address_lets_a_browser_in_which_then_needs_its_cookie_alone(server):
    path = server.url.removeprefix(f"http://127.0.0.1:{server.server_port}")
    reply, content = get(server, path, Cookie="", **{"Sec-Fetch-Site": "cross-site"})  # a link in a terminal
    assert reply.status == 200
    assert "Why this answer?" in content
    given, *rules = reply.headers["Set-Cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} == set(rules)
    assert get(server, "/", Cookie=f"a=b; {given}; c=d")[0].status == 200
    assert get(server, "/folder/flight/0" + path[1:], Cookie="")[0].status == 403
    assert get(server, path, Cookie="", Host="evil.example")[0].status == 403


def test_the_address_that_the_program_opens_lets_one_visitor_in(folders):
    server = start([folders.flight])
    path = server.url_for_once.removeprefix(f"http://127.0.0.1:{server.server_port}")
    assert server.access.token not in path
    assert get(server, path, Cookie="")[0].status == 200
    assert get(server, path, Cookie="")[0].status == 403  # read from the list of processes
    server.shutdown()
    server.server_close()


def test_each_start_has_a_token_of_its_own():
    first, second = Access(1), Access(1)
    assert len({first.token, first.ticket, second.token, second.ticket}) == 4
    assert all(len(each.token) >= 40 for each in (first, second))
    assert not first.knows(second.cookie)
