import pytest

from torchcaps.core import Registry, UnknownNameError, UserError


def test_a_taken_name_is_refused():
    registry = Registry("thing")
    registry.register("one")(1)
    with pytest.raises(ValueError, match="'one' is already registered"):
        registry.register("one")


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
    assert "a1" in registry
