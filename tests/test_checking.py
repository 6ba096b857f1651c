"""Annotations are held to while tests run."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from jaxtyping import Float, TypeCheckError
from torch import Tensor

from checking import jaxtyped

beartype = pytest.importorskip("beartype", reason="needs beartype")
checked = jaxtyped(typechecker=beartype.beartype)


@checked
def add(first: Float[Tensor, "batch size"], second: Float[Tensor, "batch size"]) -> Float[Tensor, " size"]:
    return (first + second).sum(1 if len(first) == 3 else 0)  # wrong for three rows


@checked
def zeros(count: int, made: int) -> Float[Tensor, " {count}"]:
    return torch.zeros(made)


@checked
def name_of(later: Later) -> str:
    return later.name


@checked
def pass_on(anything: NeverImported) -> NeverImported:  # noqa: F821
    return anything


@checked
@dataclass
class Later:
    name: str


def test_sizes_of_one_call_agree():
    assert add(torch.ones(2, 4), torch.ones(2, 4)).shape == (4,)
    assert add(torch.ones(5, 3), torch.ones(5, 3)).shape == (3,)
    with pytest.raises(TypeCheckError):
        add(torch.ones(2, 4), torch.ones(2, 3))


def test_a_result_has_the_sizes_of_the_arguments():
    with pytest.raises(TypeCheckError):
        add(torch.ones(3, 4), torch.ones(3, 4))


def test_a_size_may_be_the_value_of_an_argument():
    assert len(zeros(3, 3)) == 3
    with pytest.raises(TypeCheckError):
        zeros(3, 2)


@pytest.mark.parametrize("call", [lambda: zeros("3", 3), lambda: name_of("name"), lambda: Later(3)])
def test_types_without_a_shape_are_checked_too(call):
    with pytest.raises(TypeCheckError):
        call()


def test_a_result_is_of_its_type():
    later = Later("name")
    later.name = 3
    with pytest.raises(TypeCheckError):
        name_of(later)


def test_a_type_that_nobody_imports_takes_anything():
    assert pass_on(3) == 3


def test_a_checked_function_is_known_by_its_name():
    assert add.__name__ == "add"
    assert list(add.__annotations__) == ["first", "second", "return"]


def test_the_package_is_checked_where_the_run_asks_for_it(request):
    from torchcaps.core import squash

    if not request.config.getoption("--jaxtyping-packages", None):
        pytest.skip("this run does not check annotations")
    with pytest.raises(TypeCheckError):
        squash([1.0])
