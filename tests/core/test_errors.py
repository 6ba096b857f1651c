import pytest

from torchcaps.core import UserError, first_line, reason_of, require_choice, unknown_name


def test_a_message_lists_few_names():
    words = str(unknown_name("dataset", "xyz", [f"name{number:02}" for number in range(30)]))
    assert "name19 and 10 more" in words
    assert "name20" not in words
    assert str(unknown_name("dataset", "xyz", [])).endswith("known: none")


def test_the_first_line_of_a_message_stands_for_it():
    assert first_line(RuntimeError("out of memory\nTried to allocate 2 GiB")) == "out of memory"
    assert first_line(ValueError()) == ""


def test_a_reason_is_short_and_never_empty():
    assert reason_of(EOFError()) == "EOFError"
    long = reason_of(ValueError("it holds " + 1000 * "0"))
    assert len(long) < 300
    assert long.endswith("0 ...")


def test_a_choice_comes_back_and_another_value_is_answered_with_all_choices():
    assert require_choice("fit", "pad", ("crop", "pad")) == "pad"
    with pytest.raises(UserError, match="fit must be one of crop, pad, got 'squeeze'"):
        require_choice("fit", "squeeze", ("crop", "pad"))
