"""Draw explorer.png: a digit drawn by hand, as the explorer shows it; needs a run, playwright and Chromium.

python docs/gallery/explorer_screenshot.py demo/run explorer.png
"""

import math
import sys
from io import BytesIO
from pathlib import Path
from threading import Thread

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from torchcaps.explorer import Explorer, Shelf, read_given

CHROMIUM = "/usr/bin/chromium"
WIDTH = 1440
COLOURS = 256


def points_of_three() -> list[tuple[float, float]]:
    """A three on the drawing board, from its upper left end: two bows, the lower one wider."""
    upper = [(140 + 52 * math.sin(a), 92 - 44 * math.cos(a)) for a in _angles(-0.9, 2.9)]
    lower = [(138 + 62 * math.sin(a), 186 - 52 * math.cos(a)) for a in _angles(0.2, 4.1)]
    return upper + lower


def _angles(start: float, end: float, steps: int = 16) -> list[float]:
    return [start + (end - start) * step / steps for step in range(steps + 1)]


def draw_digit(page: Page) -> None:
    """Draw with the mouse, and wait for the answer."""
    page.get_by_role("button", name="Draw").click()
    page.evaluate("document.querySelector('.panel').dataset.old = 1")
    box = page.locator("canvas").bounding_box()
    assert box is not None
    scale = box["width"] / 280
    places = [(box["x"] + scale * x, box["y"] + scale * y) for x, y in points_of_three()]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places:
        page.mouse.move(*place)
    page.mouse.up()
    page.wait_for_selector(".panel:not([data-old])")


def take_picture(url: str) -> bytes:
    """The page from its top to the end of the tree, with one capsule pointed at."""
    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 2200})
        page.goto(url)
        page.wait_for_selector(".panel")
        draw_digit(page)
        page.wait_for_selector(".nearest figure", timeout=60_000)
        nodes = page.locator(".tree .node")
        nodes.nth(nodes.count() // 2).hover()
        page.wait_for_timeout(400)  # the others fade
        tree = page.locator(".tree-part").bounding_box()
        assert tree is not None
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": tree["y"] + tree["height"] + 16}
        picture = page.screenshot(clip=clip)
        browser.close()
    return picture


def main() -> None:
    """Serve the run, take the picture, and store it with few colours."""
    run, out = sys.argv[1], Path(sys.argv[2])
    with Explorer(Shelf(read_given([run]))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        picture = Image.open(BytesIO(take_picture(server.url))).convert("RGB")
        server.shutdown()
    picture.quantize(COLOURS, kmeans=2, dither=Image.Dither.NONE).save(out, optimize=True)


if __name__ == "__main__":
    main()
