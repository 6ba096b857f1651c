import pytest
import torch

from torchcaps.models import create_model


@pytest.fixture(scope="session")
def forward_pass():
    """A tiny network, three images, and all that it says of them."""
    torch.manual_seed(0)
    model = create_model("dr_capsnet_tiny_test").eval()
    images = torch.rand(3, 1, 20, 20)
    with torch.no_grad():
        return model.config, images, model(images, return_routing=True)
