import base64
import hashlib
import http.client
import json
import re
from io import BytesIO
from threading import Event, Thread

import pytest
import torch
from explorer.conftest import EXAMPLE, MARKUP, get, start
from PIL import ExifTags, Image, ImageDraw

from torchcaps.core import UserError
from torchcaps.explorer import Explorer
from torchcaps.train import load_run


def as_file(picture, kind="PNG"):
    content = BytesIO()
    picture.save(content, kind)
    return base64.b64encode(content.getvalue()).decode()


def turned(picture):
    """As a camera writes it that was held upright."""
    content, notes = BytesIO(), Image.Exif()
    notes[ExifTags.Base.Orientation] = 6
    picture.save(content, "PNG", exif=notes)
    return base64.b64encode(content.getvalue()).decode()


def seven(mode="L", paper="white", ink="black"):
    picture = Image.new(mode, (90, 120), paper)
    ImageDraw.Draw(picture).line([(20, 20), (70, 20), (40, 100)], fill=ink, width=10)
    return picture


def upload(ask, content):
    return ask("look", {"model": "0", "image": {"file": content}})


def test_the_page_runs_its_own_script_alone_and_asks_nobody_else(server):
    reply, page = get(server, "/")
    assert reply.status == 200
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1].replace("&#x27;", "'")
    script = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)[-1]
    checksum = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{checksum}'" in policy
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", page)


def test_the_server_listens_on_this_machine_alone(server):
    assert server.server_address[0] == "127.0.0.1"


def test_a_port_that_is_in_use_is_said_in_one_line(server):
    with pytest.raises(UserError, match=f"port {server.server_port} cannot be used .*choose another"):
        Explorer(server.shelf, server.server_port)


def test_numbers_without_end_are_refused_as_a_body_and_as_its_length(ask, capfd):
    status, answer = ask("look", b'{"number": ' + b"9" * 5000 + b"}")
    assert (status, answer["error"]) == (400, "A question is a JSON object.")
    assert ask("look", b"", **{"Content-Length": "9" * 5000})[0] == 413
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example:80"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Content-Type": "text/plain"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
    ids=str,
)
def test_other_sites_are_refused(ask, headers):
    status, answer = ask("look", EXAMPLE, **headers)
    assert status == 403
    assert "only itself" in answer["error"]


def test_another_name_of_the_machine_gets_no_page(server):
    assert get(server, "/", Host=f"evil.example:{server.server_port}")[0].status == 403
    assert get(server, "/", Host=f"localhost:{server.server_port}")[0].status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/folder/flight/1",
        "/folder/flight/../../secret.txt",
        "/../secret.txt",
        "/secret.txt",
        "/folder/flight/0/../../secret.txt",
        "/folder/other/0",
        "//etc/passwd",
        pytest.param(f"/folder/flight/{'9' * 5000}", id="a number without end"),
    ],
)
def test_only_pages_that_were_given_are_served(server, path):
    reply, content = get(server, path)
    assert reply.status == 404
    assert reply.headers["Content-Type"].startswith("text/plain")
    assert content == "There is no such page."


def test_an_address_with_a_token_of_before_opens_the_page_of_who_was_let_in(server):
    reply, content = get(server, "/?token=before")
    assert reply.status == 200
    assert "<main" in content
    assert get(server, "/?token=before", Cookie="")[0].status == 403


def test_without_scripts_the_page_says_that_it_needs_them(server):
    _, content = get(server, "/")
    assert "needs JavaScript" in re.search(r"<noscript>(.*?)</noscript>", content, re.S)[1]
    assert re.search(r'<p id="waiting"[^>]* hidden>', content)  # nothing works without them


def test_bars_and_words_round_the_same_numbers(ask):
    _, look = ask("look", EXAMPLE)
    _, rounds = ask("rounds", {**EXAMPLE, "winner": look["winner"]})
    for each in [*rounds["earlier"], look["last"]]:
        assert f"couplings are {each['distance']:.3f} away" in each["words"]
    first, second = (each["value"] for each in look["classes"][:2])
    assert f"The margin between them is {first - second:.2f}" in look["words"]
    assert first != round(first, 4)  # rounded twice, a number could differ from the one in words
    assert look["last"]["distance"] != round(look["last"]["distance"], 4)


def test_the_page_of_a_given_folder_is_kept_apart_from_ours(server):
    reply, content = get(server, "/folder/flight/0")
    assert reply.status == 200
    assert "a flight" in content
    policy = reply.headers["Content-Security-Policy"]
    assert "sandbox allow-scripts" in policy
    assert "default-src 'none'" in policy


def test_a_look_shows_answer_map_rounds_and_capsule(ask, folders):
    status, look = ask("look", EXAMPLE)
    assert status == 200
    values = [each["value"] for each in look["classes"]]
    assert values == sorted(values, reverse=True)
    assert look["answer"] == look["classes"][0]["name"]
    assert f"{values[0] - values[1]:.2f}" in look["words"]
    network = load_run(folders.plain).model
    status, found = ask("rounds", {**EXAMPLE, "winner": look["winner"]})
    assert status == 200
    rounds = [*found["earlier"], look["last"]]
    assert [each["number"] for each in rounds] == [1, 2, 3]
    assert rounds[0]["distance"] == 0  # every routing begins with an even split
    assert rounds[2]["distance"] > 0
    assert all(f"round {number} of 3" in each["words"] for number, each in enumerate(rounds, start=1))
    assert all("<svg" in each["tree"] and "<script>" not in each["tree"] for each in rounds)
    assert look["heat"].startswith("data:image/png")
    assert len(look["capsule"]["poses"]) == 10
    assert sorted(look["capsule"]["order"]) == list(range(4))
    assert network.classes.routing.iterations == 3


def test_a_changed_capsule_is_drawn_by_the_decoder(ask):
    look = ask("look", EXAMPLE)[1]
    question = {"model": "0", "winner": look["winner"], "poses": look["capsule"]["poses"]}
    same = ask("reconstruct", question)[1]["picture"]
    assert same == look["capsule"]["picture"]
    question["poses"][look["winner"]][0] += 3
    assert ask("reconstruct", question)[1]["picture"] != same
    assert ask("reconstruct", {**question, "model": "1"}) == (
        400,
        {"error": "This network has no decoder: it cannot draw what a capsule holds."},
    )


def test_the_tree_is_compared_with_others(ask, server):
    ask("look", EXAMPLE)
    server.shelf.reference("0").wait()
    status, found = ask("typical", EXAMPLE)
    assert status == 200
    compared = len(server.shelf.reference("0").pool.to_compare)
    assert f"{compared:,} test images of synthetic_mnist" in found["words"]
    assert found["nearest"]


def test_the_same_image_goes_to_a_second_network(ask):
    first = ask("look", EXAMPLE)[1]
    status, second = ask("look", {**EXAMPLE, "model": "1"})
    assert status == 200
    assert first["picture"] == second["picture"]
    assert second["capsule"] is None


def test_a_class_name_with_markup_is_escaped_in_the_tree(ask):
    look = ask("look", {**EXAMPLE, "model": "1"})[1]
    assert MARKUP in {each["name"] for each in look["classes"]}  # plain data; the page sets it as text
    assert "<img" not in look["last"]["tree"]


def test_only_a_digit_may_have_more_than_16_bits(ask):
    status, answer = upload(ask, as_file(Image.new("F", (30, 30)), "TIFF"))
    assert status == 400
    assert "more than 8 bits" in answer["error"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (base64.b64encode(b"this is no picture").decode(), "cannot be read as an image"),
        (as_file(seven())[:200], "cannot be read as an image"),
        ("no base64!", "did not arrive whole"),
        (as_file(Image.new("1", (10_000, 5_000))), "50 megapixels"),
        (turned(Image.new("1", (10_000, 5_000))), "50 megapixels"),
        (as_file(Image.new("I;16", (30, 30))), "one tone"),
        (as_file(Image.new("L", (60, 60), 255)), "one tone"),
        (as_file(Image.new("LAB", (60, 60)), "TIFF"), "CIELAB"),
    ],
    ids=[
        "text",
        "cut",
        "base64",
        "50 megapixels",
        "50 megapixels on its side",
        "empty, 16 bits",
        "empty",
        "CIELAB",
    ],
)
def test_a_picture_that_cannot_be_used_gets_a_message(ask, monkeypatch, server, content, words):
    monkeypatch.setattr(server.shelf.subject("0"), "is_digit", True)
    status, answer = upload(ask, content)
    assert status == 400
    assert words in answer["error"]
    assert "Traceback" not in answer["error"]


@pytest.mark.parametrize(
    ("picture", "words"),
    [
        (seven("L"), "a grey picture"),
        (seven("RGBA", (0, 0, 0, 0)), "clear parts filled with white"),
        (seven("RGB"), "cut and scaled to 28x28 px"),
    ],
    ids=["grey", "clear", "colour"],
)
def test_pictures_of_other_kinds_say_what_was_done_to_them(ask, picture, words):
    status, look = upload(ask, as_file(picture))
    assert status == 200, look
    assert words in look["prepared"]


@pytest.mark.parametrize(("kind", "others"), [("GIF", 1), ("WEBP", 2), ("PNG", 1), ("GIF", 0)])
def test_an_animation_is_said_to_be_one(ask, kind, others):
    content, frames = BytesIO(), [Image.new("L", (90, 120), 60 * number) for number in range(others)]
    seven().save(content, kind, save_all=True, append_images=frames)
    status, look = upload(ask, base64.b64encode(content.getvalue()).decode())
    assert status == 200, look
    assert ("the first image of an animation" in look["prepared"]) == bool(others)


def test_a_file_that_is_too_large_is_not_read(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.putrequest("POST", "/api/look")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", str(10**9))
    connection.putheader("Cookie", server.access.cookie)
    connection.endheaders()
    reply = connection.getresponse()
    assert reply.status == 413
    assert "larger than 16 MB" in json.loads(reply.read())["error"]
    connection.close()


@pytest.mark.parametrize(
    ("verb", "question"),
    [
        ("look", b"no json"),
        ("look", []),
        ("look", {}),
        ("look", {"model": 0, "image": {}}),
        ("look", {"model": "99", "image": {"example": 0, "of": "0"}}),
        ("look", {"model": "0", "image": {"example": 10**9, "of": "0"}}),
        ("look", {"model": "0", "image": {"example": True, "of": "0"}}),
        ("cover", {**EXAMPLE, "winner": 99}),
        ("rounds", {**EXAMPLE, "winner": -1}),
        ("reconstruct", {"model": "0", "winner": 0, "poses": [[float("inf")] * 4] * 10}),
        ("reconstruct", {"model": "0", "winner": 0, "poses": [[0.0] * 3] * 10}),
        ("reconstruct", {"model": "0", "winner": 0, "poses": [[0.0]] * 3}),
        ("pose", {"item": 9, "number": 0}),
        ("delete", {}),
    ],
    ids=repr,
)
def test_a_question_without_sense_gets_one_sentence(ask, verb, question):
    status, answer = ask(verb, question)
    assert status == 400
    assert answer["error"].endswith(".")


def test_a_server_that_closes_waits_for_its_answers_and_takes_no_more(folders):
    server = start([folders.flight])
    begun, may_end, order = Event(), Event(), []

    def slow(verb, question):
        begun.set()
        may_end.wait(10)
        order.append("answered")
        return {}

    server.service.answer = slow
    asking = Thread(target=server.answer, args=("look", {}))
    asking.start()
    begun.wait(10)
    server.shutdown()
    closing = Thread(target=lambda: (server.server_close(), order.append("closed")))
    closing.start()
    may_end.set()
    closing.join(10)
    asking.join(10)
    assert order == ["answered", "closed"]
    with pytest.raises(UserError, match="is ending"):
        server.answer("look", {})


def test_a_browser_that_goes_away_leaves_no_words_in_the_terminal(server, capsys):
    for error in (BrokenPipeError(), ConnectionResetError(), ValueError("wrong")):
        try:
            raise error
        except Exception:
            server.handle_error(None, ("127.0.0.1", 1))
    said = capsys.readouterr().err
    assert "ValueError: wrong" in said
    assert "Pipe" not in said
    assert "Reset" not in said


def test_images_to_choose_from_have_their_classes(ask):
    status, found = ask("examples", {"model": "0", "start": 0})
    assert status == 200
    assert len(found["items"]) == 30
    assert {item["label"] for item in found["items"]} <= set("0123456789")


def test_covering_gives_a_map_of_the_image(ask):
    look = ask("look", EXAMPLE)[1]
    status, found = ask("cover", {**EXAMPLE, "winner": look["winner"]})
    assert status == 200
    picture = Image.open(BytesIO(base64.b64decode(found["heat"].partition(",")[2])))
    assert picture.size == (28, 28)
    for _ in range(49):  # at least one place each time
        found = ask("cover", {**EXAMPLE, "winner": look["winner"]})[1]
    assert found["done"]
    assert "One cover takes away at most" in found["words"]
    assert ask("cover", {**EXAMPLE, "winner": look["winner"]})[1] == found


def test_the_network_is_as_before_after_every_question(server, folders):
    fresh, used = load_run(folders.plain).model, server.shelf.subject("0").run.model
    image = torch.rand(2, 1, 28, 28)
    with torch.no_grad():
        assert torch.equal(fresh(image).activations, used(image).activations)
