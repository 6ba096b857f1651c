import pytest

from torchcaps.experiments.records import Protocol, protocol_of
from torchcaps.train.recipe import load_recipe, recipe_as_json


@pytest.mark.parametrize(("epochs", "patience", "says_so"), [(9, 5, True), (8, 5, False), (9, 0, False)])
def test_a_protocol_says_when_a_run_might_have_gone_on(epochs, patience, says_so):
    changes = {"epochs": 9, "patience": patience}
    recipe = recipe_as_json(load_recipe("mnist/dr_capsnet_minimal", changes=changes))
    words = str(protocol_of(recipe, "quick", epochs=epochs))
    assert ("9 epochs (all used)" in words) == says_so


@pytest.mark.parametrize(
    ("protocol", "words"),
    [
        (Protocol(budget="quick", epochs=60), "quick budget, 60 epochs, all images"),
        (Protocol(epochs=1, images=6000), "1 epoch, 6,000 images"),
        (
            Protocol(budget="full", epochs=80, is_used_up=True, patience=3, iterations=(1, 10)),
            "full budget, at most 80 epochs (all used), iterations 1 to 10, patience 3, all images",
        ),
        (
            Protocol(budget="quick", epochs=12, pruning_strength=5e-4, note="on drawn digits"),
            "quick budget, 12 epochs, pruning strength 0.0005, all images, on drawn digits",
        ),
        (Protocol(note="1,000 test images"), "1,000 test images"),
    ],
)
def test_the_sentence_is_printed_from_the_fields(protocol, words):
    assert str(protocol) == words


def test_annealing_and_pruning_are_read_from_the_recipe():
    changes = {"annealing": {"r0": 1, "r_max": 7, "patience": 4}, "patience": 0}
    recipe = recipe_as_json(load_recipe("mnist/dr_capsnet_minimal", changes=changes))
    protocol = protocol_of(recipe, "quick", epochs=recipe["epochs"])
    assert (protocol.iterations, protocol.patience, protocol.is_used_up) == ((1, 7), 4, True)
    pruned = recipe_as_json(load_recipe("mnist/dr_capsnet_thesis", changes={"pruning": {"strength": 2e-3}}))
    assert protocol_of(pruned, "full").pruning_strength == 2e-3
