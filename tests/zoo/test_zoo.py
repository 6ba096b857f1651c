"""A tiny network through the whole zoo: packed, listed, verified, loaded, and shown a photograph."""

import json
import socket
import tomllib
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import torchcaps
from torchcaps.cli.main import app
from torchcaps.core import MissingDataError, UserError
from torchcaps.models import config_as_json
from torchcaps.storage import save_weights, write_json
from torchcaps.train import load_recipe
from torchcaps.train.run import write_recipe
from torchcaps.zoo import (
    Packing,
    create_model,
    entry_folder,
    entry_of_model,
    find_entry,
    get_weights,
    list_weights,
    load_pretrained,
    pack_run,
    packaged_weights,
    photo_predictor,
    read_photo,
    store,
)
from torchcaps.zoo.entry import PACKAGED
from torchcaps.zoo.packing.card import describe_entry
from torchcaps.zoo.packing.renew_cards import renewed

CLONE = Path(__file__).parents[2]

NAME = "efficient_capsnet_tiny_test.mnist"
SIZES = {"name": "efficient_capsnet_tiny_test", "image_size": 28, "num_classes": 10, "decoder": "none"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("zoo") / "run"
    recipe = load_recipe("mnist/efficient_capsnet_rem", changes={"model": SIZES, "pruning": None})
    torch.manual_seed(0)
    model = torchcaps.models.build_model(recipe.model)
    save_weights(folder / "weights.safetensors", model.state_dict(), {"config": config_as_json(model.config)})
    write_recipe(folder, recipe)
    (folder / "metrics.jsonl").touch()
    write_json(folder / "result.json", {"metrics": {"test_accuracy": 0.125, "epochs": 1}, "commit": "abc"})
    return folder


@pytest.fixture(scope="module")
def packed(run):
    pack_run(run, NAME, out=run.parent / "weights")
    return run.parent / "weights"


@pytest.fixture
def weights(packed, monkeypatch):
    monkeypatch.setenv("TORCHCAPS_WEIGHTS", str(packed))
    return packed


def test_a_pretrained_model_gives_what_the_run_gave(run, weights):
    model = create_model("efficient_capsnet_tiny_test", pretrained=True).eval()
    images = torch.rand(2, 1, 28, 28)
    with torch.no_grad():
        assert torch.equal(model(images).activations, torchcaps.load_run(run).model(images).activations)
    again = create_model("efficient_capsnet_tiny_test", pretrained="mnist")
    assert torch.equal(again.classes.weight, model.classes.weight)
    assert load_pretrained(NAME).recipe.data.name == "mnist"


def test_without_pretrained_a_model_is_built_as_ever():
    assert torchcaps.create_model is create_model
    assert create_model("efficient_capsnet_tiny_test", num_classes=3).config.num_classes == 3


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("dr_capsnet_tiny_test", {"pretrained": True}, "no pretrained weights of 'dr_capsnet_tiny_test'"),
        (NAME, {}, f"create_model\\('{NAME}', pretrained=True\\) loads it"),
        ("efficient_capsnet_tiny_test", {"pretrained": "svhn"}, "has pretrained weights for 'mnist'"),
        ("efficient_capsnet_tiny_test", {"pretrained": True, "num_classes": 3}, "change_classes"),
    ],
)
def test_what_cannot_be_had_is_explained(name, options, message, weights):
    with pytest.raises(UserError, match=message):
        create_model(name, **options)


def test_half_precision_is_half_as_large_and_nearly_the_same(run, tmp_path, weights):
    half = pack_run(run, NAME, Packing(half=True, data="synthetic_mnist"), out=tmp_path)
    assert half.bytes < 0.7 * find_entry(NAME).bytes
    images = torch.rand(2, 1, 28, 28)
    networks = (torchcaps.load_run(place / NAME).model for place in (tmp_path, weights))
    answers = [network(images).activations for network in networks]
    torch.testing.assert_close(*answers, rtol=0, atol=5e-3)


def test_an_entry_has_result_checksums_and_a_card(weights):
    entry = find_entry(NAME)
    assert entry.metrics == {"test_accuracy": 0.125}
    assert entry.prepare == "digit"
    assert set(entry.sha256) >= {"weights.safetensors", "recipe.json", "result.json"}
    card = (weights / NAME / "card.md").read_text()
    assert "accuracy 12.50%" in card
    assert "1 epochs, seed 42, commit abc" in card
    assert "licence: " in card


@pytest.mark.parametrize("file", ["weights.safetensors", "recipe.json"])
def test_a_changed_file_is_refused(run, tmp_path, monkeypatch, file):
    monkeypatch.setenv("TORCHCAPS_WEIGHTS", str(tmp_path))
    entry = pack_run(run, NAME, out=tmp_path)
    path = tmp_path / NAME / file
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(UserError, match="checksum is not the published one"):
        entry_folder(entry)


def test_names_that_lead_out_of_the_folder_are_refused(run, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHCAPS_WEIGHTS", str(tmp_path))
    with pytest.raises(UserError, match="is named after its model"):
        pack_run(run, "../efficient", out=tmp_path)
    pack_run(run, NAME, out=tmp_path)
    path = tmp_path / NAME / "entry.json"
    content = json.loads(path.read_text())
    for evil in ("../../evil", "/evil", "..", "a/b", ".evil", "a\\..\\evil", "", "\0evil"):
        path.write_text(json.dumps({**content, "sha256": {**content["sha256"], evil: "0"}}))
        with pytest.raises(UserError, match="is no plain file name"):
            list_weights()
        path.write_text(json.dumps({**content, "name": evil}))
        with pytest.raises(UserError, match="is no plain file name"):
            list_weights()


@pytest.mark.parametrize("part", ["metrics", "sha256"])
def test_an_entry_with_values_of_another_type_is_named(run, tmp_path, monkeypatch, part):
    monkeypatch.setenv("TORCHCAPS_WEIGHTS", str(tmp_path))
    pack_run(run, NAME, out=tmp_path)
    path = tmp_path / NAME / "entry.json"
    values = json.loads(path.read_text())
    values[part] = {key: [1] for key in values[part]}
    path.write_text(json.dumps(values))
    with pytest.raises(UserError, match=rf"entry\.json\.{part}\.\S+: expected"):
        list_weights()


def test_a_folder_of_the_user_does_not_stand_in_for_a_packaged_network(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHCAPS_WEIGHTS", str(tmp_path))
    known = find_entry("dr_capsnet_minimal.mnist")
    packed = json.loads((PACKAGED / known.name / "entry.json").read_text())
    for folder in (known.name, "zzz"):
        write_json(tmp_path / folder / "entry.json", {**packed, "sha256": {"weights.safetensors": "0"}})
        assert find_entry(known.name) == known
        assert load_pretrained(known.name).recipe.model["name"] == known.model


def test_missing_files_are_fetched_from_the_configured_address_and_verified(weights, tmp_path, monkeypatch):
    entry = find_entry(NAME)
    monkeypatch.setenv("TORCHCAPS_WEIGHTS", str(tmp_path / "cache"))
    with pytest.raises(MissingDataError, match=f"torchcaps weights get {NAME}"):
        entry_folder(entry)
    monkeypatch.setenv(store.ADDRESS, "http://plain")
    with pytest.raises(UserError, match="set TORCHCAPS_WEIGHTS_URL to the https address"):
        get_weights(entry)
    monkeypatch.setenv(store.ADDRESS, "https://there/")
    served = {f"https://there/{NAME}/{file}": (weights / NAME / file).read_bytes() for file in entry.sha256}
    monkeypatch.setattr(store, "_fetch", served.__getitem__)
    assert get_weights(entry) == tmp_path / "cache" / NAME
    (tmp_path / "cache" / NAME / "recipe.json").write_text("{}")
    with pytest.raises(UserError, match=f"is damaged.*fetch it again: torchcaps weights get {NAME}"):
        entry_folder(entry)
    assert get_weights(entry) == entry_folder(entry) == tmp_path / "cache" / NAME
    monkeypatch.setenv("TORCHCAPS_WEIGHTS", str(tmp_path / "other"))
    monkeypatch.setattr(store, "_fetch", lambda url: b"something else")
    with pytest.raises(UserError, match="is not the published file"):
        get_weights(entry)


@contextmanager
def answering(answer):
    """The address of a server that gives this answer once."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            with listening.accept()[0] as connection:
                connection.recv(4096)
                connection.sendall(answer)

        thread = Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/weights.safetensors"
        thread.join()


ANSWERS = {
    "no web server": b"220 mail.example ESMTP\r\n",
    "torn": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100\r\nhalf",
    "not there": b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
    "to a file": b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n",
    "silent": b"",
}


def test_a_file_that_ends_too_soon_is_said_to_be_cut_off():
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + 400 * b"x"
    with answering(answer) as address, pytest.raises(UserError, match="ended after 400 of 1,000 bytes"):
        store._fetch(address)


def test_a_file_that_is_too_large_is_not_fetched(monkeypatch):
    monkeypatch.setattr(store, "_MOST_BYTES", 2**20)
    answer = b"HTTP/1.1 200 OK\r\n\r\n" + (2**20 + 1) * b"x"
    with answering(answer) as address, pytest.raises(UserError, match="larger than 1 MB and was not fetched"):
        store._fetch(address)


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_that_is_no_file_is_one_line(answer):
    with answering(answer) as address, pytest.raises(UserError, match="could not be fetched"):
        store._fetch(address)


def test_an_address_that_leads_on_without_https_is_not_followed():
    answer = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/weights.safetensors\r\n\r\n"
    with (
        answering(answer) as address,
        pytest.raises(UserError, match=r"leads on to http://127\.0\.0\.1:9/.* https"),
    ):
        store._fetch(address)
    asked = urllib.request.Request("https://a/weights"), None, 302, "Found", {}, "https://b/weights"
    assert store._StaysSecure().redirect_request(*asked).full_url == "https://b/weights"


def test_an_address_that_is_none_is_one_line():
    with pytest.raises(UserError, match="could not be fetched"):
        store._fetch("https://a b:c/weights.safetensors")


def test_a_photograph_is_answered_and_the_answer_says_what_was_done(weights, tmp_path):
    page = np.full((200, 150), 235, dtype=np.uint8)
    page[60:140, 70:84] = 20
    Image.fromarray(page).save(tmp_path / "photo.png")
    predictor = photo_predictor(NAME)
    answer = predictor.answer_file(tmp_path / "photo.png")
    assert "inverted (dark on bright), cropped to the digit, 14x80 of 150x200 px" in answer.row["preparation"]
    assert answer.words.endswith("centred by mass in 28x28")
    assert answer.row["class"] in set("0123456789")


def test_python_takes_the_name_of_a_network_or_a_run_folder(run, weights, tmp_path):
    page = np.zeros((40, 40), dtype=np.uint8)
    page[8:32, 18:22] = 200
    Image.fromarray(page).save(tmp_path / "photo.png")
    by_name, by_folder = (torchcaps.predict(source, tmp_path / "photo.png") for source in (NAME, str(run)))
    assert by_name == by_folder
    assert "preparation" in by_name[0]


def test_an_own_run_on_digits_gets_a_photograph_as_the_packed_one_does(run, weights, tmp_path):
    page = np.full((200, 150), 235, dtype=np.uint8)
    page[60:140, 70:84] = 20
    Image.fromarray(page).save(tmp_path / "photo.png")
    by_run, by_name = (
        predictor.answer_file(tmp_path / "photo.png")
        for predictor in (photo_predictor(str(run)), photo_predictor(NAME))
    )
    assert by_run.row == by_name.row
    own = torchcaps.load_run(run)
    seen, preparation = read_photo(own, tmp_path / "photo.png", own.info())
    assert preparation == by_run.row["preparation"]
    assert float(seen[0, 0, 0, 0]) == 0  # the paper is black, as in MNIST
    with Image.open(tmp_path / "photo.png") as picture:
        assert torch.equal(read_photo(own, picture, own.info()).image, seen)


def test_a_photograph_without_a_digit_is_named(run, tmp_path):
    Image.new("L", (60, 60), 255).save(tmp_path / "blank.png")
    with pytest.raises(UserError, match=r"blank\.png: there is no digit to be seen"):
        photo_predictor(str(run)).answer_file(tmp_path / "blank.png")


def test_clear_parts_of_a_picture_are_white(run, tmp_path):
    ink = Image.new("RGBA", (200, 200), (0, 0, 0, 0))
    ink.paste((0, 0, 0, 255), (90, 50, 110, 150))
    ink.save(tmp_path / "clear.png")
    on_white = Image.new("RGB", (200, 200), "white")
    on_white.paste((0, 0, 0), (90, 50, 110, 150))
    on_white.save(tmp_path / "white.png")
    predictor = photo_predictor(str(run))
    clear, white = (predictor.answer_file(tmp_path / name).row for name in ("clear.png", "white.png"))
    assert clear.pop("preparation") == f"clear parts filled with white, {white.pop('preparation')}"
    assert clear == white


def test_the_commands_pack_and_list(run, tmp_path):
    runner = CliRunner()
    done = runner.invoke(app, ["weights", "pack", str(run), NAME, "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert (tmp_path / NAME / "entry.json").is_file()
    listed = runner.invoke(app, ["weights", "list", "--json"])
    assert listed.exit_code == 0
    assert isinstance(json.loads(listed.output), list)


def test_every_packaged_network_is_whole_and_its_card_is_current():
    for entry in packaged_weights():
        folder = entry_folder(entry)
        assert (folder / "card.md").read_text() == describe_entry(entry, folder)
        assert renewed(entry, CLONE, folder) == entry
        assert Path(folder / "result.json").is_file()


def test_of_several_networks_the_one_that_the_model_is_named_after_is_taken():
    assert entry_of_model("efficient_capsnet_mnist").name == "efficient_capsnet_mnist.mnist"
    assert entry_of_model("efficient_capsnet_mnist", "fashion_mnist").data == "fashion_mnist"
    with pytest.raises(UserError, match="choose with pretrained"):
        entry_of_model("efficient_capsnet_32")


def test_the_packaged_networks_are_small_and_the_page_names_those_outside_the_wheel():
    root = Path(__file__).parents[2]
    built = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    outside = {Path(path).parent.name for path in built["exclude"]}
    sizes = {entry.name: entry.bytes for entry in packaged_weights()}
    assert outside < set(sizes)
    assert sum(sizes.values()) < 25e6
    assert sum(size for name, size in sizes.items() if name not in outside) < 13e6
    page = (root / "docs" / "zoo.md").read_text().partition("## Not in the wheel")[2].partition("## Pack")[0]
    assert all(f"`{name}`" in page for name in outside)
