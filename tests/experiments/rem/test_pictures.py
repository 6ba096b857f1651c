import json

import numpy as np
import torch

from torchcaps.experiments.rem.pictures import pack_pictures, unpack_pictures


def test_pictures_survive_as_text_to_half_a_level_of_brightness():
    pictures = torch.rand(3, 2, 5, 7, generator=torch.Generator().manual_seed(0))
    packed = json.loads(json.dumps(pack_pictures(pictures)))
    back = unpack_pictures(packed)
    assert back.shape == (3, 2, 5, 7)
    assert np.abs(back - pictures.numpy()).max() <= 0.5 / 15 + 1e-6


def test_what_leaves_the_range_is_clipped():
    assert unpack_pictures(pack_pictures(torch.tensor([-1.0, 0.0, 1.0, 2.0]))).tolist() == [0, 0, 1, 1]
