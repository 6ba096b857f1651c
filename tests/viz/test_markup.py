import json
import re
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import torchcaps.viz
from torchcaps.viz import style
from torchcaps.viz.markup import element, fill, paragraphs, read_template, row, to_script

EVIL = "</script><script>alert('\"')</script>&$title"


def test_attributes_and_texts_are_escaped():
    assert element("a", "x", class_="k", stroke_width=2, title='"<&>') == (
        '<a class="k" stroke-width="2" title="&quot;&lt;&amp;&gt;">x</a>'
    )
    assert element("img", alt=EVIL).count("<") == 1
    assert "<script" not in row([EVIL], "th") + paragraphs(EVIL)


def test_parts_are_not_searched_for_words_again():
    page = fill("report.html", title="T", style="S", subtitle="$title", numbers="$$", sections="${style}")
    assert "<header><h1>T</h1>$title</header>\n$$\n${style}" in page


def test_a_missing_part_is_an_error():
    with pytest.raises(KeyError):
        fill("report.html", title="T")


@settings(max_examples=30)
@given(st.recursive(st.text() | st.integers() | st.booleans(), lambda c: st.dictionaries(st.text(), c)))
def test_data_inside_a_script_comes_back_and_cannot_end_it(data):
    text = to_script(data)
    assert json.loads(text) == data
    assert not re.search("[<>&]", text)


@pytest.mark.parametrize("name", ["report.html", "report.css", "tree.html", "tree.css", "tree.js"])
def test_templates_are_files_of_the_package(name):
    assert files("torchcaps.viz").joinpath("templates", name).is_file()
    assert read_template(name)


@pytest.mark.parametrize(
    "path", sorted(Path(torchcaps.viz.__file__).parent.rglob("*.py")), ids=lambda path: path.name
)
def test_no_markup_styles_or_scripts_stand_in_python(path):
    assert not re.search(
        r"<(div|span|style|script|table|svg|p|h\d)\b|function \(|font-size:", path.read_text()
    )


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    """As WCAG has it; text needs 4.5."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", ["report.css", "slices.css"])
def test_text_stands_out_from_what_is_behind_it(name):
    light, dark = re.findall(r":root \{(.*?)\}", read_template(name), re.S)
    for look in (light, dark):
        colours = dict(re.findall(r"--(\w+): (#\w{6})", look))
        for text in ("ink", "muted", "accent"):
            for behind in ("page", "card"):
                assert contrast(colours[text], colours[behind]) >= 4.5, (text, behind)


def test_small_text_of_a_tree_stands_out():
    beside = re.search(r"\.tree aside p \{ color: (#\w{6})", read_template("tree.css"))[1]
    assert contrast(beside, style.TILE) >= 4.5
    assert contrast(style.WARM_INK, style.PAPER) >= 4.5
    assert contrast(style.MUTED, style.PAPER) >= 4.5
