import torch
from torch import nn

from torchcaps.core.precision import without_autocast


def test_products_keep_their_dtype_inside():
    product, x = nn.Linear(3, 3), torch.rand(2, 3)
    with torch.autocast("cpu", torch.bfloat16):
        assert product(x).dtype == torch.bfloat16
        with without_autocast(x):
            assert product(x).dtype == torch.float32


def test_tensors_without_data_have_shapes():
    x = torch.empty(2, 3, device="meta")
    with without_autocast(x):
        assert (x @ x.mT).shape == (2, 2)
