"""The explorer in a real browser, used in haste, twice at once, by others, and after its server is gone."""

import pytest
from explorer.conftest import start

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
expect = playwright.expect
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

MOVE = """count => {
  const slider = document.querySelector(".slider input");
  for (let step = 0; step < count; step++) {
    slider.value = step === count - 1 ? slider.max : slider.min;
    slider.dispatchEvent(new Event("input"));
  }
}"""
CHOOSE = """keys => keys.forEach((key) => {
  const choice = document.querySelector("#model");
  choice.value = key;
  choice.dispatchEvent(new Event("change"));
})"""


def test_a_hundred_quick_moves_of_a_slider_end_at_the_last_with_few_questions(page):
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "reconstruct" in request.url else None)
    page.locator(".slider input").first.focus()
    page.keyboard.press("End")
    expect(page.locator(".slider output").first).not_to_have_text("")
    page.wait_for_load_state("networkidle")
    wanted, asked[:] = page.get_attribute("img.drawn", "src"), []
    page.click("text=Set back")
    page.wait_for_load_state("networkidle")
    page.evaluate(MOVE, 100)
    expect(page.locator("img.drawn")).to_have_attribute("src", wanted)
    assert len(asked) <= 5


def test_the_network_that_was_chosen_last_answers(page):
    for keys in (["1", "0", "1", "0"], ["0", "1"]):
        page.evaluate(CHOOSE, keys)
        name = "plain" if keys[-1] == "0" else "odd"
        expect(page.locator(".panel .model")).to_contain_text(name)
        page.wait_for_load_state("networkidle")
        assert name in page.inner_text(".panel .model")
        owners = page.evaluate(
            "[...document.querySelectorAll('.thumbs button')].map((each) => each.dataset.of)"
        )
        assert set(owners) == {keys[-1]}


def test_many_quick_choices_become_few_questions_and_the_last_is_answered(page):
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "look" in request.url else None)
    page.evaluate("() => document.querySelectorAll('.thumbs button').forEach((each) => each.click())")
    page.wait_for_timeout(400)
    page.wait_for_load_state("networkidle")
    assert len(asked) <= 3
    last = page.get_attribute(".thumbs button:last-child img", "src")
    expect(page.locator(".answer figure img")).to_have_attribute("src", last)


def test_two_pages_of_one_browser_answer_at_once(browser, server):
    context = browser.new_context()
    pages = [context.new_page() for _ in range(2)]
    for each, url in zip(pages, (server.url, server.url.partition("?")[0]), strict=True):
        each.goto(url)  # the cookie lets the second in
        each.wait_for_selector(".panel")
    for number in (3, 4):
        for each in pages:
            each.locator(".thumbs button").nth(number).click()
    for each in pages:
        each.wait_for_load_state("networkidle")
        assert each.locator("#message").is_hidden()
        assert each.locator(".thumbs button[aria-pressed=true]").count() == 1
    context.close()


def test_the_token_leaves_the_address_and_a_reload_still_works(visit, server):
    page = visit(server.url)
    assert page.url == server.url.partition("?")[0]
    page.reload()
    page.wait_for_selector(".panel")
    assert page.evaluate("document.cookie") == ""  # no script reads it


def test_a_link_in_a_file_leads_in_and_another_browser_stays_out(visit, browser, server, tmp_path):
    link = tmp_path / "link.html"
    link.write_text(f'<a href="{server.url}">open</a>')
    page = browser.new_page()
    page.goto(link.as_uri())
    page.click("text=open")
    page.wait_for_selector(".panel")
    page.reload()
    page.wait_for_selector(".panel")
    page.close()
    other = browser.new_page()
    reply = other.goto(server.url.partition("?")[0])
    assert reply.status == 403
    assert "open the whole address" in other.inner_text("body")
    other.close()


def test_every_part_says_that_the_server_is_gone(visit, folders):
    server = start([folders.plain])
    page = visit(server.url)
    page.wait_for_selector(".nearest figure")
    server.shutdown()
    server.server_close()
    page.route("**/api/**", lambda route: route.abort())
    page.click("text=Covering test")
    expect(page.locator(".stack + .words")).to_contain_text("was stopped")
    page.locator(".slider input").first.focus()
    page.keyboard.press("End")
    expect(page.locator("#message")).to_contain_text("was stopped")
    page.locator(".thumbs button").nth(2).click()
    expect(page.locator(".panel")).to_be_hidden()  # it answers for another image
    expect(page.locator("#message")).to_contain_text("Start it again (torchcaps app)")
    assert page.locator("#waiting").is_hidden()
    page.unroute("**/api/**")
    page.route("**/api/**", lambda route: route.fulfill(status=200, body="half an ans"))
    page.locator(".thumbs button").nth(3).click()
    expect(page.locator("#message")).to_contain_text("does not answer")
