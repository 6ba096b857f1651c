import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg

from torchcaps.core import UserError
from torchcaps.viz.style import canvas
from torchcaps.viz.text import class_labels, drawable, drawable_labels, join_words, literal, shorten, width_of


def test_names_default_to_numbers_and_must_be_as_many_as_classes():
    assert class_labels(None, 2) == ["0", "1"]
    with pytest.raises(UserError, match="3 classes need 3 names, got 1"):
        class_labels(["a"], 3)


def test_letters_without_a_glyph_are_left_out_and_an_empty_name_becomes_a_number():
    assert drawable_labels(["\u732b", "\u72ac dog", " a\n b "], 3) == ["class 0", "dog", "a b"]
    assert drawable_labels(["\u732b 1", "\u72ac 1", "2"], 3) == [
        "class 0",
        "class 1",
        "2",
    ]  # not two of a name
    assert drawable("Größe 5 Ångström é") == "Größe 5 Ångström é"


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=12))
def test_any_text_is_drawn_as_it_is_without_a_warning(text):
    figure = canvas(200, 50)
    drawn = figure.text(0.1, 0.5, literal(drawable(text)))
    FigureCanvasAgg(figure).draw()
    assert drawn._preprocess_math(drawn.get_text()) == (drawable(text), False)


def test_long_names_are_cut():
    assert [shorten("airplane", most) for most in (8, 7)] == ["airplane", "airpla…"]


def test_wide_letters_count_twice():
    cat = "\u732b"
    assert width_of(f"a{cat}") == 3
    assert shorten(4 * cat, 8) == 4 * cat
    assert [shorten(5 * cat, most) for most in (9, 8, 1, 0)] == [4 * cat + "…", 3 * cat + "…", "…", "…"]


def test_words_are_joined():
    assert [join_words(list("abc")[:n]) for n in (1, 2, 3)] == ["a", "a and b", "a, b and c"]
