from typing import Any

import pytest

from torchcaps.core import UserError
from torchcaps.core.fields import convert, require_equal_lengths, whole_numbers


def test_a_union_takes_the_first_kind_that_fits():
    assert convert(int | tuple[int, ...], [1, 2], "here") == (1, 2)
    assert convert(int | None, None, "here") is None
    with pytest.raises(UserError, match=r"here: expected int or tuple, got 'x'"):
        convert(int | tuple[int, ...], "x", "here")


def test_what_cannot_be_checked_passes():
    assert convert(Any, "anything", "here") == "anything"


def test_whole_numbers_are_found_in_nested_tuples_without_truth_values():
    assert list(whole_numbers(((1, (2, 3)), True, 0.5, "4"))) == [1, 2, 3]


def test_lists_of_unequal_length_are_named():
    require_equal_lengths(types=(1, 2), strides=(3, 4))
    with pytest.raises(UserError, match=r"types has 1, strides has 2"):
        require_equal_lengths(types=(1,), strides=(3, 4))
