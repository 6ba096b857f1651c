"""The parts of the explorer that need no server."""

import base64
import re
from io import BytesIO

import numpy as np
import pytest
import torch
from explorer.conftest import save_run
from parse.traces import random_layers
from PIL import Image, ImageDraw

from torchcaps.core import UserError
from torchcaps.data import as_bytes, dataset_info, open_any
from torchcaps.explorer import Shelf, read_given, write_explorer
from torchcaps.explorer.embedded import embed_decoder, round_decoder, rounding_error
from torchcaps.explorer.service import Service
from torchcaps.explorer.subject import Reference, Subject
from torchcaps.explorer.subject.covering import Covering
from torchcaps.explorer.subject.pool import find_pool
from torchcaps.explorer.subject.reference import Compared, Neighbour, _halves
from torchcaps.explorer.subject.rounds import Round, _at_most, spread_rounds
from torchcaps.explorer.subject.words import say_answer, say_cover, say_round, say_rounded, say_typical
from torchcaps.explorer.tabs import describe_tabs
from torchcaps.explorer.upload import make_ready, open_upload
from torchcaps.layers import ConvDecoder
from torchcaps.models import create_model
from torchcaps.parse import Explainer, Keys, collect_keys, parse_tree
from torchcaps.train import load_run, read_image
from torchcaps.zoo import prepare_digit


@pytest.fixture(scope="module")
def subject(folders):
    return Subject(load_run(folders.plain), "plain")


@pytest.fixture(scope="module")
def reference(subject):
    return Reference(subject)


def test_a_cover_costs_most_where_the_class_looks():
    image = torch.zeros(1, 1, 24, 24)
    image[..., 6:10, 14:18] = 1.0  # the class is the brightness of this square
    covering = Covering(lambda images: images[:, 0, 6:10, 14:18].mean((1, 2)), image)
    assert covering.heat().max() == 0  # nothing is covered yet
    steps = 0
    while not covering.is_done:
        covering.advance(0.0)  # one place
        steps += 1
    assert steps == 49
    heat = covering.heat()
    row, column = divmod(int(heat.argmax()), 24)
    assert 6 <= row < 10
    assert 14 <= column < 18
    assert heat[20:, :8].abs().max() == 0
    assert heat.max() <= 1
    assert covering.whole == covering.most_lost == 1


def test_a_cover_that_gains_activation_costs_nothing():
    image = torch.zeros(1, 1, 24, 24)
    image[..., 6:10, 14:18] = 1.0  # the class is that this square is dark, and there are others
    covering = Covering(lambda images: 2 - images[:, 0, 6:10, 14:18].mean((1, 2)), image)
    while not covering.is_done:
        covering.advance(1.0)
    assert covering.heat().abs().max() == covering.most_lost == 0


@pytest.mark.parametrize(("cost", "places"), [(0.001, 49), (0.03, 3), (0.2, 1)])
def test_a_slower_network_covers_fewer_places_in_the_same_time(monkeypatch, cost, places):
    clock, seen = [0.0], []
    monkeypatch.setattr("torchcaps.explorer.subject.covering.perf_counter", lambda: clock[0])

    def activation_of(images):
        clock[0] += cost * len(images)
        seen.append(len(images))
        return images.mean((1, 2, 3))

    covering = Covering(activation_of, torch.ones(1, 1, 28, 28))
    covering.advance(0.1)
    assert sum(seen) == 1 + places  # the whole image came first
    while not covering.is_done:
        covering.advance(10.0)
    assert sum(seen) == 50


def test_many_rounds_are_spread_from_the_first_to_the_last():
    assert spread_rounds(1) == [1]
    assert spread_rounds(3) == [1, 2, 3]
    assert spread_rounds(50)[0] == 1
    assert spread_rounds(50)[-1] == 50
    assert len(spread_rounds(50)) <= 6


def test_a_layer_of_fewer_rounds_keeps_its_own():
    network = create_model("gamma_capsnet_tiny_test")
    routings = network.hidden.routing, network.classes.routing
    for routing, own in zip(routings, (1, 4), strict=True):
        routing.iterations = own
    found = {}
    for number in (1, 2, 3):
        with _at_most(network, number):
            found[number] = [routing.iterations for routing in routings]
    assert found == {1: [1, 1], 2: [1, 2], 3: [1, 3]}
    assert [routing.iterations for routing in routings] == [1, 4]


def test_trees_are_learnt_from_every_second_image_and_judged_by_the_others():
    keys = Keys(np.arange(5)[:, None], np.arange(5) + 10, 3, 20)
    learnt, held_out = _halves(keys)
    assert (learnt.indices.ravel().tolist(), learnt.predicted.tolist()) == ([0, 2, 4], [10, 12, 14])
    assert (held_out.indices.ravel().tolist(), held_out.predicted.tolist()) == ([1, 3], [11, 13])


def test_images_to_choose_from_are_not_those_compared_with(subject):
    to_choose, to_compare, words, _ = find_pool(subject)
    assert len(to_choose) == (len(to_choose) + len(to_compare)) // 4
    known = {image.numpy().tobytes() for image in to_compare.images[:]}
    assert not known & {image.numpy().tobytes() for image in to_choose.images[:]}
    assert words == "test images of synthetic_mnist"


def test_a_dataset_that_is_not_here_is_replaced_and_the_page_says_so(tmp_path):
    run = load_run(save_run(tmp_path / "away", data="fashion_mnist"))
    pool = find_pool(Subject(run, "away", tmp_path))
    assert "fashion_mnist is not on this machine" in pool.words
    assert len(pool.to_choose) == 200


def test_an_answer_to_a_drawn_stand_in_is_neither_right_nor_wrong(tmp_path):
    run = save_run(tmp_path / "away", data="fashion_mnist", decoder="none")
    shelf = Shelf(read_given([str(run)]), tmp_path)
    service = Service(shelf)
    looks = [
        service.answer("look", {"model": "0", "image": {"example": number, "of": "0"}}) for number in range(2)
    ]
    items = service.answer("examples", {"model": "0", "start": 0})["items"]
    shelf.close()
    assert not [look["words"] for look in looks if "The answer is" in look["words"]]
    assert {item["label"].partition(" for ")[0] for item in items} == {"stand-in"}


def test_an_image_is_not_its_own_neighbour(reference):
    reference.wait()
    images = reference.pool.to_compare.images
    found = reference.compare(images[5:6])
    assert 5 not in {each.number for each in found.nearest}
    assert [each.differing for each in found.nearest] == sorted(each.differing for each in found.nearest)


def test_the_last_round_is_the_network_itself(subject, reference):
    image = reference.pool.to_choose.images[:1]
    look = subject.look(image)
    _, inputs, _ = subject.pipeline.for_evaluation(image)
    with torch.no_grad():
        output = subject.run.model(inputs)
    assert look.activations.tolist() == pytest.approx(output.activations[0].tolist(), abs=1e-6)
    assert look.winner == int(output.activations.argmax())
    earlier = subject.earlier_rounds(image, look.winner)
    assert [each.number for each in earlier] == [1, 2]
    assert look.last.number == subject.num_rounds == 3
    assert {each.tree.chosen for each in earlier} == {look.last.tree.chosen}


def test_a_network_without_capsules_still_answers(tmp_path):
    subject = Subject(load_run(save_run(tmp_path / "plain", "conv_baseline_tiny_test")), "plain")
    look = subject.look(torch.zeros(1, 1, 28, 28, dtype=torch.uint8))
    assert look.last is None
    assert "has no parse trees" in look.obstacle
    assert look.drawn is None
    assert subject.cover(torch.zeros(1, 1, 28, 28, dtype=torch.uint8), 0).heat().shape == (28, 28)


@pytest.mark.parametrize(("lost", "says_little"), [(0.5, False), (0.1, False), (0.07, True), (0.02, True)])
def test_a_map_of_covers_that_cost_little_is_said_to_say_little(lost, says_little):
    """Its colours are stretched: the warmest place is as warm as that of any other map."""
    words = say_cover(lost, 0.8)
    assert f"at most {lost:.2f} of its activation of 0.80" in words
    assert ("says little" in words) == says_little


def test_the_error_of_a_rounded_decoder_is_told_in_tones():
    assert "at most 2.55 of 255 tones" in say_rounded(0.01)
    assert "less than 0.01 of 255 tones" in say_rounded(1e-6)


def test_a_close_answer_is_called_close():
    assert "a close call" in say_answer("ab", [0.5, 0.45], 0, None)
    assert "fairly clear" in say_answer("ab", [0.5, 0.35], 0, None)
    assert "fairly clear" in say_answer("ab", [0.5, 0.25], 0, None)
    assert "a clear answer" in say_answer("ab", [0.5, 0.15], 0, None)
    assert "a clear answer. The answer is wrong: it is b." in say_answer("ab", [0.9, 0.1], 0, 1)


def test_what_a_folder_holds_is_found(folders, tmp_path):
    given = read_given([str(folders.plain), str(folders.flight)])
    assert given.choices[0].title == "plain: dr_capsnet_tiny_test"
    assert given.first == 1
    assert given.tabs["flight"] == [folders.flight / "flight.html"]
    (tmp_path / "demo").mkdir()
    save_run(tmp_path / "demo" / "run")
    assert read_given([str(tmp_path / "demo")]).first == 1
    tabs = {tab["kind"]: tab for tab in describe_tabs(given)}
    assert tabs["flight"]["items"] == ["flight"]
    assert tabs["slices"]["items"] == []
    assert "torchcaps lung segment" in tabs["slices"]["command"]


def test_a_pretrained_network_is_known_by_what_it_learnt_and_from_which_pictures():
    choices = {each.source: each for each in read_given([]).choices}
    with_rem, plain = choices["gamma_capsnet_mnist.mnist-rem"], choices["efficient_capsnet_mnist.mnist"]
    assert with_rem.has_rem
    assert not plain.has_rem
    assert with_rem.pictures == plain.pictures == "digit"
    assert choices["efficient_capsnet_32.cifar10"].pictures == "cifar10"


def test_pretrained_networks_fill_the_tabs_for_which_nothing_was_given():
    tabs = {tab["kind"]: tab["items"] for tab in describe_tabs(read_given([]))}
    assert tabs["pose"] == ["pose_mlp_small.cube_tetrahedron"]
    # the network that needs its couplings comes first
    assert tabs["parts"] == ["parse_capsnet.partwhole", "efficient_capsnet_mnist.partwhole"]
    assert tabs["flight"] == tabs["slices"] == []


def test_a_missing_extra_is_named_with_its_command(monkeypatch):
    monkeypatch.setattr("torchcaps.explorer.tabs.tabs.find_spec", lambda name: None)
    tabs = {tab["kind"]: tab for tab in describe_tabs(read_given([]))}
    assert tabs["slices"]["install"] == 'pip install "torchcaps[lung]"'
    assert tabs["flight"]["install"] == 'pip install "torchcaps[uav]"'
    assert tabs["pose"]["install"] == ""  # our own renderer draws it


@pytest.mark.parametrize(
    ("name", "words"),
    [("nowhere", "neither a folder nor"), ("empty", "holds nothing"), ("scan", "torchcaps lung segment")],
)
def test_a_folder_that_shows_nothing_is_refused(tmp_path, name, words):
    (tmp_path / "empty").mkdir()
    (tmp_path / "scan").mkdir()
    (tmp_path / "scan" / "1.dcm").write_bytes(b"")
    with pytest.raises(UserError, match=words):
        read_given([str(tmp_path / name)])


def test_the_file_holds_everything_and_asks_nobody(folders, tmp_path):
    explainer = Explainer(load_run(folders.plain), reference=20)
    path = tmp_path / "explorer.html"
    size = write_explorer(explainer, ["test:3", "test:8"], path)
    page = path.read_text()
    assert size == path.stat().st_size < 10_000_000
    assert "connect-src &#x27;none&#x27;" in page
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", page)
    assert '"takes": "masked"' in page  # its decoder
    assert '"sheet"' not in page
    assert '"state": "ready"' in page
    write_explorer(explainer, ["test:3"], path)  # its own file is written anew
    path.write_text("mine")
    with pytest.raises(UserError, match="is kept"):
        write_explorer(explainer, ["test:3"], path)
    assert path.read_text() == "mine"


def test_the_file_says_what_was_done_to_each_image(folders, tmp_path):
    Image.new("L", (40, 60), 120).save(tmp_path / "photo.png")
    explainer = Explainer(load_run(folders.plain), reference=20)
    names = [str(tmp_path / "photo.png"), "test:3"]
    write_explorer(explainer, names, tmp_path / "explorer.html")
    page = (tmp_path / "explorer.html").read_text()
    assert re.findall(r'"prepared": "([^"]*)"', page) == ["brought to 28x28 px", "taken as it is"]


@pytest.mark.parametrize(("limit", "value"), [("MOST_BYTES", 10**6), ("_MOST_ERROR", 0.0)])
def test_a_file_without_its_decoder_shows_one_number_at_a_time(folders, tmp_path, monkeypatch, limit, value):
    monkeypatch.setattr(f"torchcaps.explorer.as_file.{limit}", value)
    path = tmp_path / "explorer.html"
    write_explorer(Explainer(load_run(folders.plain), reference=20), ["test:3", "test:8"], path)
    page = path.read_text()
    assert '"decoder": null' in page
    assert page.count('"sheet": "data:image/png') == 2


def test_a_decoder_is_rounded_and_says_how_far_that_moves_its_drawings(subject, reference):
    look = subject.look(reference.pool.to_choose.images[:1])
    rounded = round_decoder(subject.run.model.decoder)
    first = rounded.layers[0].weight
    assert torch.equal(first, first.half().float())
    assert not torch.equal(first, subject.run.model.decoder.layers[0].weight)
    sheet = subject.perturb(look)
    assert 0 < rounding_error(rounded, look, sheet) < 1e-3
    sheet[0, 0, 0, 3, 3] += 0.25
    assert rounding_error(rounded, look, sheet) == pytest.approx(0.25, abs=1e-3)


def test_the_normalisation_of_a_written_decoder_is_that_of_the_network():
    decoder = ConvDecoder(6, (1, 28, 28)).double().eval()
    for values in (decoder.norm.weight, decoder.norm.bias, decoder.norm.running_mean):
        torch.nn.init.normal_(values)
    torch.nn.init.uniform_(decoder.norm.running_var, 0.0, 1e-4)  # so small that the guard counts
    step = next(step for step in embed_decoder(decoder)["steps"] if step["kind"] == "scale")
    maps = torch.randn(1, 16, 7, 7, dtype=torch.float64)
    factor, summand = (
        torch.tensor(step[name], dtype=torch.float64)[:, None, None] for name in ("factor", "summand")
    )
    torch.testing.assert_close(factor * maps + summand, decoder.norm(maps))


def test_numbers_that_change_the_drawing_most_come_first(subject, reference):
    look = subject.look(reference.pool.to_choose.images[:1])
    sheet = subject.perturb(look)
    middle = sheet[:, 5]
    assert torch.allclose(look.drawn, middle[0], atol=1e-6)
    ends = (sheet[:, [0, 10]] - look.drawn).abs().flatten(1).mean(1)
    assert torch.allclose(look.changes, ends, atol=1e-6)


def test_a_file_that_would_be_too_large_is_not_written(folders, tmp_path, monkeypatch):
    monkeypatch.setattr("torchcaps.explorer.as_file.MOST_BYTES", 100_000)
    explainer = Explainer(load_run(folders.plain), reference=20)
    with pytest.raises(UserError, match="give fewer, about 1"):
        write_explorer(explainer, ["test:3"], tmp_path / "explorer.html")
    assert not (tmp_path / "explorer.html").exists()


def compared(share, others, same=0):
    return Compared(read_as=3, share=share, others=others, same=same, children=8, nearest=(Neighbour(0, 2),))


def test_a_file_compares_trees_of_the_levels_that_were_asked_for(folders, tmp_path, monkeypatch):
    asked = []

    def spy(network, images, pipeline, *, levels):
        asked.append(levels)
        return collect_keys(network, images, pipeline, levels=levels)

    monkeypatch.setattr("torchcaps.explorer.subject.reference.collect_keys", spy)
    write_explorer(Explainer(load_run(folders.plain), levels=4), ["test:3"], tmp_path / "explorer.html")
    assert set(asked) == {4}


def test_a_network_gets_the_example_of_another_one_in_its_own_tones(tmp_path):
    grey = save_run(tmp_path / "grey", decoder="none")
    colour = save_run(
        tmp_path / "colour",
        data="synthetic_cifar10",
        classes=tuple("abcdefghij"),
        decoder="none",
        image_size=32,
        in_channels=3,
    )
    shelf = Shelf(read_given([str(grey), str(colour)]))
    question = {"model": "1", "image": {"example": 0, "of": "0"}}
    answer = Service(shelf).answer("look", question)
    with Image.open(BytesIO(base64.b64decode(answer["picture"].partition(",")[2]))) as picture:
        seen = np.asarray(picture.convert("RGB")).astype(int)
    image = shelf.reference("0").pool.to_choose.images[:1][0, 0].numpy()
    shelf.close()
    assert "It knows 10 classes" in answer["words"]  # whether it is right is not known: classes differ
    assert np.ptp(seen, axis=2).max() == 0  # grey, not tinted
    assert seen.mean() == pytest.approx(image.mean(), abs=3)  # and not inverted


def test_a_picture_that_pillow_does_not_open_for_its_size_is_called_too_large(monkeypatch):
    content = BytesIO()
    Image.new("L", (30, 30)).save(content, "PNG")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(UserError, match="hundreds of megapixels, at most 40 are taken"):
        open_upload(content.getvalue())


@pytest.mark.parametrize(("distance", "is_even"), [(0.0, True), (0.037, False)])
def test_the_first_round_is_called_even_where_it_is(distance, is_even):
    tree = parse_tree(random_layers(0, (6, 3)))
    words = say_round(Round(1, tree, distance), 3)
    assert f"couplings are {distance:.3f} away" in words
    assert ("begins with an even split" in words) == is_even


def test_couplings_that_are_no_split_are_not_said_to_be_one():
    (layer,) = random_layers(0, (6, 3))
    halved = layer._replace(routed=layer.routed._replace(coupling=layer.routed.coupling / 2))
    words = say_round(Round(1, parse_tree([halved]), 0.25), 1)
    assert "They are 0.250 away from being all alike: 0 if they are, 1 for a capsule" in words
    assert "split" not in words


def test_a_few_images_do_not_say_what_is_unusual():
    many, few = (say_typical(compared(1.0, count), "3", "digits", 600) for count in (30, 2))
    assert "stranger than 100% of 30 held-out ones read as 3. That is unusual" in many
    assert "stranger than 2 of 2 held-out ones read as 3. They are too few" in few
    assert "unusual:" not in few
    assert "be careful with this answer" in say_typical(compared(0.95, 100), "3", "digits", 600)
    assert "within the usual range" in say_typical(compared(0.94, 100), "3", "digits", 600)
    assert "no stranger than any of the 30" in say_typical(compared(0.0, 30), "3", "digits", 600)


def test_images_with_the_same_tree_are_counted_among_all_of_the_pool():
    words = say_typical(compared(0.0, 33, same=60), "3", "digits", 600)
    assert words.endswith("The same tree is found in 60 of the 600 images.")
    none = say_typical(compared(0.0, 33), "3", "digits", 600)
    assert none.endswith("The same tree is found in none of the 600 images.")


def test_images_that_are_shown_are_not_said_to_be_missing():
    words = say_typical(compared(None, 0), "3", "digits", 600)  # all images read as 3 are in one half
    assert words == "Not known: too few of the 600 digits are read as 3."


@pytest.mark.parametrize("is_digit", [False, True])
@pytest.mark.parametrize("mode", ["1", "P", "RGB"])
def test_a_large_picture_is_taken_as_predict_takes_it(mode, is_digit, tmp_path):
    picture = Image.new("RGB", (1600, 1200), "white")
    draw = ImageDraw.Draw(picture)
    way = [(600 + 400 * (number % 2), 200 + 100 * number) for number in range(9)]
    draw.line(way, fill="black", width=3)  # so thin that every way of making it smaller gives other tones
    picture.convert(mode).save(tmp_path / "large.png")
    info = dataset_info("synthetic_mnist")
    found = make_ready((tmp_path / "large.png").read_bytes(), info, is_digit=is_digit).image
    if is_digit:
        expected = as_bytes(prepare_digit(open_any(tmp_path / "large.png")).picture).unsqueeze(0)
    else:
        expected = read_image(tmp_path / "large.png", info)
    assert torch.equal(found, expected)


@pytest.mark.parametrize("side", [64, 1500])
def test_a_digit_of_16_bits_is_taken_as_predict_takes_it(side):
    pixels = np.zeros((side, side), np.uint16)
    pixels[side // 4 : -side // 4, side // 2 - side // 16 : side // 2 + side // 16] = 60_000
    content = BytesIO()
    Image.fromarray(pixels).save(content, "PNG")
    picture, _ = open_upload(content.getvalue(), is_digit=True)
    assert "more than 8 bits" in prepare_digit(picture).words
    picture, _ = open_upload(content.getvalue())
    assert sorted(set(np.asarray(picture).flatten().tolist())) == [0, round(60_000 / 257)]
