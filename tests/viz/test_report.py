import base64
import errno
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from torchcaps.core import UserError
from torchcaps.viz import Report, draw_confusion, draw_curves, to_png

ROWS = [{"epoch": e, "train_loss": 1 / e, "val_loss": 1 / e, "val_accuracy": 0.9} for e in (1, 2, 3)]


class Page(HTMLParser):
    """Collects tags, and checks that each is closed in turn."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.open = [], []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "img"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def full_report():
    report = Report("Digits", "What was learned.\n\nAnd how.")
    report.numbers({"accuracy": "97.2 %", "parameters": 1_962_224})
    report.section("Curves", "Loss by epoch.", draw_curves(ROWS), alt="Loss falls")
    report.section("Mistakes", "", draw_confusion(np.array([[3, 1], [0, 2]])))
    report.section("Numbers", table=[{"metric": "loss", "value": 0.1}, {"metric": "error", "value": 0.2}])
    return report


@pytest.mark.slow
def test_the_page_holds_every_figure_as_it_was_drawn():
    html = full_report().to_html()
    images = re.findall(r'src="data:image/png;base64,([^"]+)"', html)
    assert len(images) == 2
    assert base64.b64decode(images[0]) == to_png(draw_curves(ROWS))


def test_the_page_is_well_formed_and_every_image_is_described():
    page = Page(full_report().to_html())
    images = [attributes for tag, attributes in page.tags if tag == "img"]
    assert [image["alt"] for image in images] == ["Loss falls", "Mistakes"]
    assert images[0]["width"] == "900"


def test_a_wide_figure_scrolls_on_a_narrow_screen_and_a_small_one_fits():
    report = Report("Digits")
    report.section("Curves", "", draw_curves(ROWS))
    report.section("Mistakes", "", draw_confusion(np.array([[3, 1], [0, 2]])))
    tags = Page(report.to_html()).tags
    before = [tags[place - 1] for place, (tag, _) in enumerate(tags) if tag == "img"]
    assert before[0] == ("div", {"class": "scroll picture"})
    assert before[1][0] == "h2"


def test_the_page_needs_nothing_from_outside():
    html = full_report().to_html()
    assert "http" not in html
    assert "//" not in re.sub(r"base64,[^\"]+", "", html)
    assert {tag for tag, _ in Page(html).tags}.isdisjoint({"script", "link", "iframe"})
    for _, attributes in Page(html).tags:
        assert attributes.get("src", "data:").startswith("data:")


def test_it_follows_the_readers_colours():
    assert "prefers-color-scheme: dark" in full_report().to_html()


def test_text_is_never_markup():
    evil = "<script>alert('\"')</script>&"
    report = Report(evil, evil)
    report.numbers({evil: evil})
    report.section(evil, evil, draw_curves(ROWS), alt=evil, table=[{evil: evil}])
    html = report.to_html()
    assert "<script" not in html
    assert html.count("&lt;script&gt;alert(&#x27;&quot;&#x27;)&lt;/script&gt;&amp;") == 10
    Page(html)


def test_an_empty_line_starts_a_paragraph():
    assert "<p>What was learned.</p><p>And how.</p>" in full_report().to_html()


def test_saving_replaces_the_page_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "new" / "report.html"
    Report("first").save(path)
    assert full_report().save(path) == path
    assert path.read_text(encoding="utf-8") == full_report().to_html()
    assert list(path.parent.iterdir()) == [path]
    assert path.stat().st_size < 3_000_000


def test_a_failed_save_keeps_the_old_page(tmp_path, monkeypatch):
    path = Report("first").save(tmp_path / "report.html")

    def fail(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_text", fail)
        with pytest.raises(UserError, match="No space left"):
            Report("second").save(path)
    assert "first" in path.read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == [path]


def test_rows_of_a_table_agree():
    with pytest.raises(UserError, match="columns"):
        Report("a").section("b", table=[{"x": 1}, {"y": 2}])


def test_a_section_may_hold_markup_of_our_own():
    report = Report("Title")
    report.insert("A < B", "text & more", "<svg id='drawn'></svg>")
    page = report.to_html()
    assert "<h2>A &lt; B</h2><p>text &amp; more</p><svg id='drawn'></svg>" in page


def test_a_card_has_room_for_millions():
    """A number of parameters must not be broken: bold digits are at most 0.7 em wide, commas 0.4 em."""
    style = full_report().to_html()
    least = float(re.search(r"\.numbers \{[^}]*minmax\(([\d.]+)rem", style)[1])
    padding = 2 * float(re.search(r"\.numbers div \{[^}]*padding: [\d.]+rem ([\d.]+)rem", style)[1])
    size = float(re.search(r"\.numbers dd \{[^}]*font-size: ([\d.]+)rem", style)[1])
    assert least - padding - 0.125 >= (7 * 0.7 + 2 * 0.4) * size  # 1,643,776; 0.125 are the borders
