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
