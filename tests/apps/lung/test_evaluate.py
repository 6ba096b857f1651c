"""What is predicted of prepared regions."""

import numpy as np
import torch
from PIL import Image

from torchcaps.apps.lung.evaluate import _predict, _Region
from torchcaps.apps.lung.segment import SliceNetwork
from torchcaps.core.types import SegmentationOutput


def test_pixels_are_marked_from_a_probability_of_one_half_on(tmp_path):
    ramp = np.arange(256, dtype=np.uint8).reshape(16, 16)
    network = SliceNetwork(
        SegmentationOutput, lambda grey: grey, 1, torch.device("cpu")
    )  # grey as probability
    regions = []
    for number in range(5):  # more than one batch
        image, mask = tmp_path / f"{number}.png", tmp_path / f"{number}_mask.png"
        Image.fromarray(np.roll(ramp, number, 0)).save(image)
        Image.fromarray((np.roll(ramp, number, 0) > 200).astype(np.uint8) * 255).save(mask)
        regions.append(_Region(image, mask, "a", 0, number, (0, 0), None, None))
    found = [pair for batch in _predict(network, regions) for pair in zip(*batch, strict=True)]
    assert len(found) == 5
    for number, (predicted, truth) in enumerate(found):
        assert np.array_equal(predicted, np.roll(ramp, number, 0) >= 128)
        assert np.array_equal(truth, np.roll(ramp, number, 0) > 200)
