"""Two small untrained runs, and the page that shows them."""

import http.client
import json
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest
import torch

from torchcaps.explorer import Explorer, Shelf, read_given
from torchcaps.models import create_model
from torchcaps.storage import save_weights
from torchcaps.train.recipe import Recipe
from torchcaps.train.run import DataCard, write_recipe

MARKUP = '<img src=x onerror="document.title=1">'
DIGITS = tuple("0123456789")
EXAMPLE = {"model": "0", "image": {"example": 3, "of": "0"}}
CHROMIUM = Path("/usr/bin/chromium")
OPTIONS = [
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SLOW = 20_000  # milliseconds, on a busy machine


def save_run(folder, model="dr_capsnet_tiny_test", data="synthetic_mnist", classes=DIGITS, **options):
    """An untrained run; its parameters are drawn from a seed of their own."""
    torch.manual_seed(len(folder.name))
    settings = {"image_size": 28, "num_classes": len(classes), **options}
    network = create_model(model, **settings)
    channels, height, width = network.image_shape
    card = DataCard(
        classes=classes,
        mean=(0.1,) * channels,
        std=(0.3,) * channels,
        channels=channels,
        height=height,
        width=width,
        fit="crop",
    )
    images = {"name": data, "limit": 100, "validation": 0.2}
    plain = {"model": {"name": model, **settings}, "data": images, "epochs": 1}
    recipe = Recipe.from_plain(plain, "recipe")
    write_recipe(folder, recipe, card)
    save_weights(folder / "weights.safetensors", network.state_dict(), {"epoch": 0})
    return folder


def start(names, **options):
    """The page of some folders on a free port, answered by a thread of its own."""
    server = Explorer(Shelf(read_given([str(name) for name in names]), **options), 0)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    return server


def get(server, path, **headers):
    """A page over HTTP, asked for with the cookie: the reply, and its text."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.request("GET", path, headers={"Cookie": server.access.cookie, **headers})
    reply = connection.getresponse()
    content = reply.read().decode()
    connection.close()
    return reply, content


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Runs with and without a decoder, one with a class name that is markup, and a folder of a flight."""
    base = tmp_path_factory.mktemp("explorer")
    flight = base / "flight"
    flight.mkdir()
    (flight / "flight.html").write_text("<!DOCTYPE html><title>flight</title><p>a flight</p>")
    (flight / "summary.json").write_text("{}")
    (base / "secret.txt").write_text("secret")
    return SimpleNamespace(
        base=base,
        plain=save_run(base / "plain", primary_pose=2, class_pose=4),
        odd=save_run(base / "odd", "gamma_capsnet_tiny_test", classes=(MARKUP, *DIGITS[1:]), decoder="none"),
        flight=flight,
    )


@pytest.fixture(scope="session")
def server(folders):
    server = start([folders.plain, folders.odd, folders.flight])
    yield server
    server.shutdown()
    server.server_close()
    server.shelf.close()


@pytest.fixture(scope="session")
def ask(server):
    """Asks a question over HTTP: the status, and the answer as plain data."""

    def ask(verb, question, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
        body = question if isinstance(question, bytes) else json.dumps(question).encode()
        known = {"Content-Type": "application/json", "Cookie": server.access.cookie}
        connection.request("POST", f"/api/{verb}", body, {**known, **headers})
        reply = connection.getresponse()
        answer = json.loads(reply.read())
        connection.close()
        return reply.status, answer

    return ask


@pytest.fixture(scope="session")
def browser():
    if not CHROMIUM.is_file():
        pytest.skip("needs Chromium at /usr/bin/chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    with playwright.sync_playwright() as tools:
        playwright.expect.set_options(timeout=SLOW)
        browser = tools.chromium.launch(executable_path=str(CHROMIUM), args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Opens a page; at the end, nothing may have gone wrong in it or left the machine."""
    pages = []

    def visit(url, width=1280, height=900, **options):
        page = browser.new_page(viewport={"width": width, "height": height}, **options)
        page.set_default_timeout(SLOW)
        requests, errors = [], []
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
        page.goto(url)
        page.wait_for_selector(".panel")
        pages.append((page, requests, errors, url))
        return page

    yield visit
    for page, requests, errors, url in pages:
        page.close()
        outside = [
            each for each in requests if not each.startswith((url.partition("?")[0], "data:", "blob:"))
        ]
        assert not outside
        refused = "400 (Bad Request)", "net::ERR_FAILED"  # pictures, and a server that is gone
        unexpected = [each for each in errors if not any(words in each for words in refused)]
        assert not unexpected


@pytest.fixture
def page(visit, server):
    """The page of the runs, with one network."""
    from playwright.sync_api import expect  # where there is a browser, there is this too

    page = visit(server.url)
    page.select_option("#second", "")
    expect(page.locator(".panel")).to_have_count(1)
    return page
