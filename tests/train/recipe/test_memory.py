import pytest

from torchcaps.core import UserError
from torchcaps.train.recipe import build, require_memory

SMALL = {"model": {"name": "dr_capsnet_tiny_test"}, "data": {"name": "synthetic_mnist"}, "epochs": 1}


def test_weights_have_to_fit_into_the_memory_of_the_machine(monkeypatch):
    recipe = build(SMALL)
    needed = 4 * sum(each.numel() for each in recipe.sketch().parameters())
    for there in (needed, 0):  # 0 where the system does not tell
        monkeypatch.setattr("torchcaps.train.recipe.memory.machine_memory", lambda there=there: there)
        require_memory(recipe)
    monkeypatch.setattr("torchcaps.train.recipe.memory.machine_memory", lambda: needed - 1)
    with pytest.raises(UserError, match="GiB for its weights alone"):
        require_memory(recipe)
