import pytest
import torch


@pytest.fixture(autouse=True)
def _fixed_seed():
    """Tests draw from the CPU generator; each starts from the same point, in any order."""
    torch.manual_seed(0)
