import math

import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import UserError
from torchcaps.routing import InvertedAttentionRouting, create_routing, inverted_attention_routing

from routing.contract import IN_CAPS, OUT_CAPS, POSE, SHAPE, RoutingContract, draw


def normalised(s, gain, offset):
    mean = s.mean(-1, keepdim=True)
    variance = ((s - mean) ** 2).mean(-1, keepdim=True)
    return (s - mean) / torch.sqrt(variance + 1e-5) * gain + offset


class TestInvertedAttention(RoutingContract):
    name = "inverted_attention"

    def closed_form(self, routing, votes, activations):
        return normalised(votes.sum(1) / OUT_CAPS, routing.norm_gain, routing.norm_offset)


def test_a_slow_transcription_gives_the_same_result():
    votes, gain, offset, score = draw(1, 6, 4, 5)[0], draw(5, seed=1), draw(5, seed=2), draw(5, seed=3)
    poses = [normalised(votes[:, j].sum(0) / OUT_CAPS, gain, offset) for j in range(OUT_CAPS)]
    for _ in range(3):
        r = [
            torch.stack([votes[i, j] @ poses[j] / math.sqrt(POSE) for j in range(OUT_CAPS)]).softmax(0)
            for i in range(IN_CAPS)
        ]
        poses = [
            normalised(sum(r[i][j] * votes[i, j] for i in range(IN_CAPS)), gain, offset)
            for j in range(OUT_CAPS)
        ]
    routed = inverted_attention_routing(
        votes[None],
        torch.ones(1, 6),
        norm_gain=gain,
        norm_offset=offset,
        score=score,
        score_bias=torch.tensor(0.3, dtype=torch.float64),
        iterations=4,
    )
    assert_close(routed.poses[0], torch.stack(poses))
    assert_close(routed.coupling[0], torch.stack(r))
    assert_close(routed.activations[0], torch.sigmoid(torch.stack(poses) @ score + 0.3))


def test_all_poses_have_the_same_length():
    routed = create_routing("inverted_attention", SHAPE)(torch.randn(2, 6, 4, 5), torch.ones(2, 6))
    assert_close(routed.poses.norm(dim=-1), torch.full((2, 4), math.sqrt(POSE)), rtol=1e-3, atol=1e-3)


def test_impossible_settings_are_refused():
    with pytest.raises(UserError, match="iterations"):
        InvertedAttentionRouting(SHAPE, iterations=0)
