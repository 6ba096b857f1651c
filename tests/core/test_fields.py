from typing import Any

import pytest

from torchcaps.core import UserError
from torchcaps.core.fields import convert, require_equal_lengths, whole_numbers


def test_a_union_takes_the_first_kind_that_fits():
    assert convert(int | tuple[int, ...], [1, 2], "here") == (1, 2)
    assert convert(int | None, None, "here") is None
    with pytest.raises(UserError, match=r"here: expected int or tuple, got 'x'"):
        convert(int | tuple[int, ...], "x", "here")


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (int, True, "here: expected int, got True"),  # which Python takes for 1
        (float, False, "here: expected float, got False"),
        (bool, 1, "here: expected bool, got 1"),
        (int, 2**63, "here: the number is too large"),
        (tuple[int, ...], [1, "x"], r"here\[1\]: expected int, got 'x'"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(kind, value, words):
    with pytest.raises(UserError, match=words):
        convert(kind, value, "here")


def test_what_a_tensor_can_hold_passes():
    for value in (2**63 - 1, 1 - 2**63):
        assert convert(int, value, "here") == value
    assert convert(bool, True, "here") is True


def test_what_cannot_be_checked_passes():
    assert convert(Any, "anything", "here") == "anything"


def test_whole_numbers_are_found_in_nested_tuples_without_truth_values():
    assert list(whole_numbers(((1, (2, 3)), True, 0.5, "4"))) == [1, 2, 3]


def test_lists_of_unequal_length_are_named():
    require_equal_lengths(types=(1, 2), strides=(3, 4))
    with pytest.raises(UserError, match=r"types has 1, strides has 2"):
        require_equal_lengths(types=(1,), strides=(3, 4))
