import pytest

from torchcaps.core import UserError
from torchcaps.experiments.plan import join_changes
from torchcaps.train.recipe import load_recipe
from torchcaps.train.recipe.values import with_changes


def test_a_later_change_of_the_same_key_is_made_later():
    first = {"model.routing": {"name": "em"}, "epochs": 3}
    joined = join_changes(first, {"model": {"name": "tiny"}}, {"epochs": 5, "model.decoder": "fc"})
    assert list(joined.items()) == [
        ("model.routing", {"name": "em"}),
        ("model", {"name": "tiny"}),
        ("epochs", 5),
        ("model.decoder", "fc"),
    ]
    values = {"model": {"name": "large", "stem": 8}, "epochs": 100}
    assert with_changes(values, joined) == {"model": {"name": "tiny", "decoder": "fc"}, "epochs": 5}
    assert values == {"model": {"name": "large", "stem": 8}, "epochs": 100}


def test_changes_are_made_before_overrides_and_nothing_is_shared():
    model = {"name": "dr_capsnet_tiny_test", "image_size": 28}
    recipe = load_recipe("mnist/dr_capsnet", ["epochs=7"], {"model": model, "epochs": 3, "data.limit": 40})
    assert (recipe.epochs, recipe.data.limit, recipe.model) == (7, 40, model)
    assert recipe.model is not model


def test_a_key_below_a_single_value_is_refused():
    with pytest.raises(UserError, match=r"cannot change epochs\.more: epochs is a single value"):
        with_changes({"epochs": 3}, {"epochs.more": 1})
