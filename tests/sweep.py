"""Sweeps over many values: the first of each kind is tested always, the others with the slow tests."""

import pytest


def first_of_each(values, kind, slow=()):
    """Parameters for all values; those of a `slow` kind, or whose kind came before, are marked slow."""
    seen, parameters = set(slow), []
    for value in values:
        repeated = kind(value) in seen
        seen.add(kind(value))
        parameters.append(pytest.param(value, marks=[pytest.mark.slow] if repeated else []))
    return parameters
