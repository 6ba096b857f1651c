"""Photograph the page of a flight at an update: `python uav_page.py found/flight.html 20 uav-page.png`."""

import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

page_file, update, picture = Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
arguments = ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking"]
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=arguments)
    page = browser.new_page(viewport={"width": 980, "height": 900})
    page.goto(page_file.as_uri())
    page.locator("input[type=range]").fill(update)
    page.wait_for_timeout(500)
    page.locator("section.flight").screenshot(path=picture)
    browser.close()
with Image.open(picture) as shot:
    small = shot.convert("RGB")
small.thumbnail((720, 720))
small.quantize(200, method=Image.Quantize.FASTOCTREE).save(picture, optimize=True)
