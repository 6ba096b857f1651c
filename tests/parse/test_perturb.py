import torch
from torch.testing import assert_close

from torchcaps.layers.decoder import FcDecoder
from torchcaps.parse import OFFSETS, perturb_capsule


def test_offsets_go_from_a_quarter_below_to_a_quarter_above():
    assert OFFSETS[0] == -0.25
    assert OFFSETS[5] == 0
    assert OFFSETS[-1] == 0.25
    assert list(OFFSETS) == sorted(OFFSETS)


def test_each_picture_is_the_decoder_on_one_changed_number():
    torch.manual_seed(0)
    decoder = FcDecoder(3, 4, (1, 5, 6))
    poses, chosen = torch.randn(1, 3, 4), torch.tensor([2])
    drawn = perturb_capsule(decoder, poses, chosen)
    assert drawn.shape == (4, 11, 1, 5, 6)
    for dimension in range(4):
        for column, offset in enumerate(OFFSETS):
            moved = poses.clone()
            moved[0, 2, dimension] += offset
            assert_close(drawn[dimension, column], decoder(moved, chosen)[0])
