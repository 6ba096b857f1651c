import pytest
import torch

torch.set_num_threads(1)  # tests run side by side: more threads than cores would wait for each other


@pytest.fixture(autouse=True)
def _fixed_seed():
    """Tests draw from the CPU generator; each starts from the same point, in any order."""
    torch.manual_seed(0)
