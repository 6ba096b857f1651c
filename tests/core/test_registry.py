import pytest

from torchcaps.core import Registry, UnknownNameError, UserError
from torchcaps.losses import LOSSES
from torchcaps.routing import ROUTINGS
from torchcaps.train import TASKS


def test_a_taken_name_is_refused():
    registry = Registry("thing")
    registry.register("one")(1)
    with pytest.raises(ValueError, match="'one' is already registered"):
        registry.register("one")(1)


def test_a_definition_that_comes_again_counts_from_then_on():
    registry = Registry("thing")

    def define(size):
        @registry.register("one")
        class Thing:
            length = size

        return Thing

    assert define(1) is not define(2)
    assert registry["one"].length == 2

    def other():
        pass

    with pytest.raises(ValueError, match="already registered"):
        registry.register("one")(other)


def test_an_unknown_name_is_answered_with_near_ones():
    registry = Registry("thing")
    for name in ("apple", "apply", "pear"):
        registry.register(name)(name)
    with pytest.raises(UnknownNameError) as caught:
        registry["aple"]
    assert str(caught.value) == "unknown thing 'aple'; did you mean apple, apply?"
    assert isinstance(caught.value, KeyError | UserError)
    with pytest.raises(UnknownNameError, match="known: apple, apply, pear"):
        registry["zzz"]


def test_names_match_a_pattern_in_order():
    registry = Registry("thing")
    for name in ("b2", "a1", "b1"):
        registry.register(name)(name)
    assert registry.names("b*") == ["b1", "b2"]
    assert list(registry) == ["a1", "b1", "b2"]
    assert "a1" in registry


@pytest.mark.parametrize("entry", [len, 3, str])
def test_an_entry_that_does_not_derive_from_the_base_is_refused(entry):
    registry = Registry("number", int)
    registry.register("truth")(bool)
    with pytest.raises(UserError, match="number 'mine' must be a class derived from int, got "):
        registry.register("mine")(entry)
    assert registry.names() == ["truth"]


@pytest.mark.parametrize("registry", [LOSSES, ROUTINGS, TASKS], ids=["loss", "routing", "task"])
def test_parts_of_a_training_derive_from_their_base(registry):
    with pytest.raises(UserError, match=f"{registry.kind} 'mine' must be a class derived from "):
        registry.register("mine")(lambda first, second: first)
