"""The two stems of the vision transformer."""

import pytest
import torch

from torchcaps.core import UserError
from torchcaps.models import create_model


def tokens_of_pixel(stem):
    """Which tokens, row by row, change with the last pixel of the first patch."""
    network = create_model("vit_tiny_test", patch=4, stem=stem)
    image = torch.zeros(1, 1, 20, 20, requires_grad=True)
    found = network.patches(image)
    reached = []
    for y in range(found.shape[2]):
        for x in range(found.shape[3]):
            (grad,) = torch.autograd.grad(found[0, :, y, x].sum(), image, retain_graph=True)
            reached += [(y, x)] if grad[0, 0, 3, 3] != 0 else []
    return found.shape[1:], reached


def test_both_stems_make_a_token_of_each_patch_and_convolutions_see_over_its_border():
    linear, alone = tokens_of_pixel("linear")
    conv, shared = tokens_of_pixel("conv")
    assert linear == conv == (8, 5, 5)
    assert alone == [(0, 0)]
    assert set(shared) == {(0, 0), (0, 1), (1, 0), (1, 1)}


@pytest.mark.parametrize("patch", [1, 5])
def test_convolutions_need_a_patch_that_is_a_power_of_two(patch):
    with pytest.raises(UserError, match="power of two"):
        create_model("vit_tiny_test", patch=patch, stem="conv")


def test_a_transformer_on_convolutions_answers_for_sizes_that_are_no_multiple_of_a_patch():
    network = create_model("vit_tiny_test", image_size=18, patch=4, stem="conv").eval()
    assert network(torch.randn(2, 1, 18, 18)).activations.shape == (2, 4)


def test_an_image_of_no_whole_number_of_patches_is_seen_to_its_last_row_and_column():
    network = create_model("vit_tiny_test", patch=4, image_size=(6, 9)).eval()
    image = torch.randn(1, 1, 6, 9, requires_grad=True)
    assert len(network.positions) == 1 + 2 * 3
    network(image).poses[0, 0].sum().backward()
    assert image.grad[0, 0].count_nonzero() == 6 * 9
