"""Marked `compile` because the run-time type checks of the other pass would answer first."""

import pytest
import torch

from torchcaps.core import UserError
from torchcaps.models import create_model

pytestmark = pytest.mark.compile
NAMES = ("dr_capsnet", "conv_baseline", "segcaps", "unet", "pose_convnet", "descriptor")


@pytest.mark.parametrize("name", NAMES)
def test_images_of_another_kind_or_device_are_refused(name):
    model = create_model(f"{name}_tiny_test").eval()
    images = torch.zeros(2, *model.image_shape)
    with pytest.raises(UserError, match=r"real numbers such as torch\.float32, got torch\.uint8"):
        model(images.byte())
    with pytest.raises(UserError, match="the images are on meta, the weights on cpu"):
        model(images.to("meta"))
    model(images)


@pytest.mark.parametrize("name", NAMES)
def test_images_of_another_precision_than_the_weights_are_refused_unless_autocast_takes_them(name):
    model = create_model(f"{name}_tiny_test").eval()
    images = torch.zeros(2, *model.image_shape)
    words = r"images are torch\.float64, the weights torch\.float32; .* images\.to\(torch\.float32\)"
    with pytest.raises(UserError, match=words):
        model(images.double())
    with torch.autocast("cpu", torch.bfloat16):
        model(images.bfloat16())
        with pytest.raises(UserError, match=words):
            model(images.double())
    model.double()(images.double())
