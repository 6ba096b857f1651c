import pytest

from torchcaps.core import UserError
from torchcaps.models import create_model
from torchcaps.routing import iterations_of, set_iterations


def test_iterations_are_set_for_all_for_some_or_for_each_by_name():
    network = create_model("gamma_capsnet_tiny_test")
    set_iterations(network, 5)
    assert iterations_of(network) == {"hidden.routing": 5, "classes.routing": 5}
    set_iterations(network, 2, "classes*")
    assert iterations_of(network) == {"hidden.routing": 5, "classes.routing": 2}
    assert iterations_of(network, "classes*") == {"classes.routing": 2}
    set_iterations(network, {"hidden.routing": 1, "classes.routing": 4})
    assert (network.hidden.routing.iterations, network.classes.routing.iterations) == (1, 4)


def test_a_routing_without_iterations_is_none_of_them():
    assert not iterations_of(create_model("efficient_capsnet_tiny_test"))


@pytest.mark.compile  # the run-time type checks would answer some of them first
@pytest.mark.parametrize(
    ("iterations", "message"),
    [
        (0, "iterations must be at least 1, got 0"),
        (2.5, "iterations must be a whole number of at least 1, got 2.5"),
        ("3", "iterations must be a whole number of at least 1, got '3'"),
        ({"classes.routing": 2}, "'hidden.routing' is not among"),
    ],
)
def test_counts_that_cannot_be_are_refused_when_they_are_set(iterations, message):
    network = create_model("gamma_capsnet_tiny_test")
    with pytest.raises(UserError, match=message):
        set_iterations(network, iterations)
