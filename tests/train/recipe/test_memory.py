import subprocess
import sys

import pytest

from torchcaps.core import UserError
from torchcaps.train.recipe import build, require_memory

SMALL = {"model": {"name": "dr_capsnet_tiny_test"}, "data": {"name": "synthetic_mnist"}, "epochs": 1}
SKETCH = """
import sys
from torchcaps.train import load_recipe

for name in ("mnist/efficient_capsnet", "mnist/dr_capsnet", "mnist/gamma_capsnet", "mnist/deepcaps"):
    load_recipe(name).sketch()
print({"sympy", "torch._dynamo", "triton.runtime"} & set(sys.modules))
"""


def test_weights_have_to_fit_into_the_memory_of_the_machine(monkeypatch):
    recipe = build(SMALL)
    needed = 4 * sum(each.numel() for each in recipe.sketch().parameters())
    for there in (needed, 0):  # 0 where the system does not tell
        monkeypatch.setattr("torchcaps.train.recipe.memory.machine_memory", lambda there=there: there)
        require_memory(recipe)
    monkeypatch.setattr("torchcaps.train.recipe.memory.machine_memory", lambda: needed - 1)
    with pytest.raises(UserError, match="GiB for its weights alone"):
        require_memory(recipe)


def test_a_sketch_does_not_wait_for_the_compiler():
    """In a new process: other tests have imported it."""
    done = subprocess.run([sys.executable, "-c", SKETCH], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
