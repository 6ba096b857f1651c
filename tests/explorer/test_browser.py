"""The explorer in a real browser, with every request recorded."""

import base64
from copy import deepcopy
from io import BytesIO

import numpy as np
import pytest
import torch
from explorer.conftest import MARKUP, save_run
from PIL import Image, ImageDraw

from torchcaps.explorer import write_explorer
from torchcaps.explorer.embedded import embed_decoder, round_decoder
from torchcaps.explorer.subject import Subject, picture_uri
from torchcaps.layers import ConvDecoder, FcDecoder
from torchcaps.pages import explain_images
from torchcaps.parse import Explainer
from torchcaps.train import load_run
from torchcaps.viz.slice_viewer import Finding, SliceView, slice_viewer

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
expect = playwright.expect
HIDDEN = "(b => b.scrollWidth - b.clientWidth)(document.querySelector('.board'))"  # pixels of a tree
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def wait_for_new_answer(page, act):
    """Do something that makes the page ask; wait until another panel stands there."""
    page.evaluate("document.querySelector('.panel').dataset.old = 1")
    act()
    page.wait_for_selector(".panel:not([data-old])")


def test_a_drawn_digit_is_read(page):
    page.click("text=Draw")
    box = page.locator("canvas").bounding_box()

    def draw():
        page.mouse.move(box["x"] + 80, box["y"] + 60)
        page.mouse.down()
        for x, y in ((200, 60), (150, 150), (120, 240)):
            page.mouse.move(box["x"] + x, box["y"] + y, steps=8)
        page.mouse.up()

    wait_for_new_answer(page, draw)
    assert "280x280" not in page.inner_text("figcaption")
    assert page.inner_text(".verdict")


def test_an_upload_is_read_and_a_bad_one_gets_a_message(page, tmp_path):
    good, text, huge = tmp_path / "seven.png", tmp_path / "text.png", tmp_path / "huge.png"
    picture = Image.new("RGBA", (90, 120))  # clear
    ImageDraw.Draw(picture).line([(20, 20), (70, 20), (40, 100)], fill="black", width=10)
    picture.save(good)
    text.write_text("no picture")
    Image.new("1", (10_000, 5_000)).save(huge)
    page.click("text=Upload")
    wait_for_new_answer(page, lambda: page.set_input_files("input[type=file]", good))
    assert "clear parts filled with white" in page.inner_text(".answer figcaption")
    for path, words in ((text, "cannot be read as an image"), (huge, "50 megapixels")):
        page.set_input_files("input[type=file]", path)
        expect(page.locator("#message")).to_contain_text(words)
        expect(page.locator(".panel")).to_be_hidden()  # that of the picture before
        assert page.locator("#short").get_attribute("hidden") is not None  # shown on small screens
    wait_for_new_answer(page, lambda: page.set_input_files("input[type=file]", good))
    assert page.locator("#message").is_hidden()
    assert page.locator(".panel").is_visible()


def test_a_file_name_with_markup_is_shown_as_text(page, tmp_path):
    path = tmp_path / "<img src=x onerror=alert(1)>.txt"
    path.write_text("no picture")
    page.click("text=Upload")
    page.set_input_files("input[type=file]", path)
    page.wait_for_selector("#message:not([hidden])")
    assert page.locator(".drop img").count() == 0
    assert path.name in page.inner_text(".drop")


def test_bars_of_classes_begin_and_end_at_the_same_places(page):
    tracks = "[...document.querySelectorAll('.answer .bar b')].map((each) => each.getBoundingClientRect())"
    edges = page.evaluate(tracks + ".map((box) => [box.left, box.right])")
    assert len(edges) == 10
    assert all(edge == pytest.approx(edges[0], abs=0.5) for edge in edges)


def test_a_file_that_is_dropped_beside_the_zone_does_not_leave_the_page(page):
    prevented = page.evaluate("""() => ["dragover", "drop"].map((name) => {
        const dataTransfer = new DataTransfer();
        const event = new DragEvent(name, { bubbles: true, cancelable: true, dataTransfer });
        document.body.dispatchEvent(event);
        return event.defaultPrevented;
    })""")
    assert prevented == [True, True]


def test_the_keyboard_stays_at_the_numbers_when_all_are_shown(visit, tmp_path):
    run = load_run(save_run(tmp_path / "run", primary_pose=2, class_pose=8))
    write_explorer(Explainer(run), ["test:3"], tmp_path / "explorer.html")
    page = visit((tmp_path / "explorer.html").as_uri())
    page.get_by_role("button", name="All 8 numbers").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.matches('.slider input')")


def test_a_capsule_under_the_pointer_shows_what_it_sees_and_a_click_follows(page):
    node = page.locator(".tree .node").first
    node.hover()
    assert page.locator(".tree aside svg").count() == 1  # the patch, and its frame on the image
    assert page.locator(".tree .seen").count() == 1
    assert "Activation" in page.inner_text(".tree aside")
    node.click()
    page.mouse.move(5, 5)
    assert page.locator(".tree .pinned").count() == 1
    title = page.inner_text(".tree aside h3")
    page.locator(".tree aside button.bar.leads").first.click()
    assert page.inner_text(".tree aside h3") != title
    page.keyboard.press("Escape")
    assert page.locator(".tree .pinned").count() == 0


def test_the_rounds_of_routing_can_be_stepped_through(page):
    slider = page.get_by_label("Rounds of routing").first
    assert "round 3 of 3" in page.inner_text(".rounds")
    slider.focus()
    page.keyboard.press("Home")
    assert "round 1 of 3" in page.inner_text(".rounds")
    assert "0.000 away from an even split" in page.inner_text(".tree-part")


def test_a_slider_of_the_capsule_changes_the_drawing(page):
    before = page.get_attribute("img.drawn", "src")
    page.locator(".slider input").first.focus()
    page.keyboard.press("End")
    expect(page.locator("img.drawn")).not_to_have_attribute("src", before)
    page.click("text=Set back")
    expect(page.locator("img.drawn")).to_have_attribute("src", before)


def test_networks_can_be_switched_and_set_side_by_side(page):
    wait_for_new_answer(page, lambda: page.select_option("#model", "1"))
    assert "odd: gamma_capsnet_tiny_test" in page.inner_text(".panel .model")
    assert "no decoder" in page.inner_text(".panel")
    wait_for_new_answer(page, lambda: page.select_option("#second", "0"))
    assert page.locator(".panel").count() == 2


def test_a_network_of_other_pictures_gets_an_example_of_its_own(page):
    page.locator(".thumbs button").nth(2).click()
    name = "efficient_capsnet_32.cifar10 (pretrained)"
    page.select_option("#model", label=name)
    expect(page.locator(".panel .model")).to_contain_text(name)  # the answer for the click may come before it
    expect(page.locator(".thumbs button").first).to_have_attribute("aria-pressed", "true")
    assert "taken as it is" in page.inner_text(".answer figcaption")  # a digit would be made larger


def test_a_class_name_with_markup_is_shown_as_text(page):
    wait_for_new_answer(page, lambda: page.select_option("#model", "1"))
    assert MARKUP in page.locator(".bars").inner_text()
    assert page.locator("img[src=x]").count() == 0
    assert page.title() == "torchcaps explorer"


def test_the_tree_is_compared_with_those_of_other_images(page):
    page.wait_for_selector(".nearest figure")
    assert "Compared with" in page.inner_text(".panel section:last-child")


def test_everything_can_be_reached_with_the_keyboard(page):
    reached = set()
    for _ in range(140):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "(e => e.id || e.dataset.way || e.getAttribute('aria-label') || e.className || "
                "e.textContent)(document.activeElement)"
            )
        )
    assert {"model", "second", "draw", "upload", "examples", "more", "Rounds of routing"} <= reached
    assert any(str(each).startswith("Capsule ") for each in reached)
    assert "Set back" in reached
    page.locator(".tree .node").first.focus()
    page.keyboard.press("Enter")
    assert page.locator(".tree .pinned").count() == 1


def test_tabs_answer_to_arrow_keys_and_name_what_is_missing(page):
    page.get_by_role("tab", name="Images").focus()
    page.keyboard.press("ArrowRight")
    frame = page.frame_locator("iframe")
    assert frame.locator("p").inner_text() == "a flight"
    page.get_by_role("tab", name="CT slices").click()
    assert "torchcaps lung segment" in page.inner_text("#pages > div:not([hidden])")


def test_a_list_of_nodules_does_not_make_a_small_screen_scroll_sideways(browser, tmp_path):
    view = SliceView(
        title="Nodules",
        text="Words.",
        notice="No medical device.",
        columns=("nodule", "slice", "diameter", "volume", "probability"),
        findings=[Finding(slice=0, row=3.0, column=3.0, cells=("1", "19", "12.6 mm", "1,036 mm³", "0.75"))],
    )
    grey = np.zeros((1, 16, 16), np.uint8)
    (tmp_path / "page.html").write_text(slice_viewer(grey, grey, view))
    page = browser.new_page(viewport={"width": 400, "height": 700})
    page.goto((tmp_path / "page.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.close()


@pytest.mark.parametrize("width", [960, 1300, 1600])
def test_a_tree_is_whole_on_a_screen_that_has_room_for_it(visit, server, width):
    page = visit(server.url, width=width, height=900)
    page.select_option("#second", "")
    expect(page.locator(".panel")).to_have_count(1)
    page.wait_for_selector(".tree")
    assert page.evaluate(HIDDEN) <= 0


@pytest.mark.parametrize("width", [960, 1300, 1600])
def test_a_tree_is_whole_on_the_page_of_an_image(browser, folders, tmp_path, width):
    explain_images(Explainer(load_run(folders.plain), reference=20), ["test:3"], tmp_path)
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto((tmp_path / "test-3.html").as_uri())
    assert page.evaluate(HIDDEN) <= 0
    page.close()


def test_a_small_screen_shows_all_without_scrolling_sideways(visit, server):
    page = visit(server.url, width=380, height=700, has_touch=True)
    page.wait_for_selector(".tree")
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    page.get_by_role("tab", name="Object pose").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 380


def test_a_small_screen_shows_the_page_of_an_image_without_scrolling_sideways(browser, folders, tmp_path):
    explain_images(Explainer(load_run(folders.plain), reference=20), ["test:3"], tmp_path)
    page = browser.new_page(viewport={"width": 380, "height": 700})
    page.goto((tmp_path / "test-3.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
    page.close()


@pytest.fixture(scope="module")
def strong(folders):
    """A run whose decoder draws more than grey, although it is not trained."""
    run = load_run(folders.plain)
    with torch.no_grad():
        for layer in run.model.decoder.layers[::2]:
            layer.weight *= 4
    return run


@pytest.fixture(scope="module")
def written(strong, tmp_path_factory):
    """The page of two images as a file."""
    path = tmp_path_factory.mktemp("file") / "explorer.html"
    write_explorer(Explainer(strong, reference=20), ["test:3", "test:8"], path)
    return path.as_uri()


def test_the_file_works_without_a_server(visit, written):
    page = visit(written)
    wait_for_new_answer(page, lambda: page.locator(".thumbs button").nth(1).click())
    page.locator(".tree .node").first.hover()
    assert "Activation" in page.inner_text(".tree aside")
    page.click("text=Covering test")
    expect(page.locator(".panel .words").nth(1)).to_contain_text("covered")
    page.wait_for_selector(".nearest figure")
    assert page.locator("nav").is_hidden()


def drawn_on(page):
    return page.evaluate("document.querySelector('canvas.drawn').toDataURL()")


def test_sliders_of_the_file_move_together_and_the_network_draws(visit, written, strong):
    page = visit(written)
    subject = Subject(strong, "strong")
    look = page.evaluate("({ winner: DATA.looks[0].winner, poses: DATA.looks[0].capsule.poses })")
    before = drawn_on(page)
    for number in (0, 1):
        page.locator(".slider input").nth(number).focus()
        page.keyboard.press("End")
    for number in page.evaluate("DATA.looks[0].capsule.order")[:2]:
        look["poses"][look["winner"]][number] += 0.25
    wanted = pixels_of(picture_uri(subject.reconstruct(look["winner"], look["poses"])))
    difference = np.abs(pixels_of(drawn_on(page)) - wanted)
    assert difference.max() <= 3  # a tone, in the colours of ink
    assert np.abs(pixels_of(before) - wanted).max() > 3
    page.click("text=Set back")
    assert drawn_on(page) == before


def pixels_of(uri):
    picture = Image.open(BytesIO(base64.b64decode(uri.partition(",")[2]))).convert("RGB")
    return np.asarray(picture).astype(int)


@pytest.mark.parametrize(
    "decoder",
    [
        FcDecoder(3, 5, (1, 9, 7)),
        FcDecoder(3, 5, (3, 8, 8), masked=False),
        ConvDecoder(5, (1, 28, 28)),
        ConvDecoder(5, (3, 37, 33)),
    ],
    ids=["dense", "dense, all capsules", "growing", "growing, cut"],
)
def test_the_decoder_of_a_file_is_as_exact_as_that_of_the_network(visit, written, decoder):
    torch.manual_seed(0)
    for values in decoder.state_dict().values():
        if values.is_floating_point():
            values.uniform_(0.05, 0.4) if values.dim() == 1 else values.normal_(0, 0.2)
    rounded = round_decoder(decoder)
    poses, chosen = torch.randn(1, 3, 5), torch.tensor([1])
    with torch.no_grad():
        exact = deepcopy(rounded).double()(poses.double(), chosen).flatten()
        plain = rounded(poses, chosen).flatten()
    page = visit(written)
    found = page.evaluate(
        "([given, poses]) => { DATA.decoder = given; decoder = null; return Array.from(decode(poses, 1)); }",
        [embed_decoder(rounded), poses[0].tolist()],
    )
    assert exact.std() > 0.01
    error = (torch.tensor(found, dtype=torch.float64) - exact).abs().max()
    assert error <= 2 * (plain - exact).abs().max() + 1e-7
