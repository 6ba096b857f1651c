import math

import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import UserError
from torchcaps.routing import SlotAttentionRouting, create_routing

from routing.contract import IN_CAPS, OUT_CAPS, POSE, SHAPE, RoutingContract, draw
from routing.test_inverted_attention import normalised


def gru(cell, x, h):
    (wr, wz, wn), (ur, uz, un) = cell.weight_ih.chunk(3), cell.weight_hh.chunk(3)
    (br, bz, bn), (cr, cz, cn) = cell.bias_ih.chunk(3), cell.bias_hh.chunk(3)
    reset = torch.sigmoid(wr @ x + br + ur @ h + cr)
    keep = torch.sigmoid(wz @ x + bz + uz @ h + cz)
    new = torch.tanh(wn @ x + bn + reset * (un @ h + cn))
    return (1 - keep) * new + keep * h


def slow_slot_attention(routing, votes, a, iterations):
    """One sample, one slot at a time."""

    def norm(layer, x):
        return normalised(x, layer.weight, layer.bias)

    slots = list(routing.slots)
    for _ in range(iterations):
        queries = [routing.query.weight @ norm(routing.slot_norm, slot) for slot in slots]
        c = [
            torch.stack(
                [
                    (routing.key.weight @ norm(routing.vote_norm, votes[i, j])) @ queries[j] / math.sqrt(POSE)
                    for j in range(OUT_CAPS)
                ]
            ).softmax(0)
            for i in range(IN_CAPS)
        ]
        for j in range(OUT_CAPS):
            weights = torch.stack([c[i][j] * a[i] for i in range(IN_CAPS)])
            weights = weights / weights.sum()
            taken = sum(
                weights[i] * (routing.value.weight @ norm(routing.vote_norm, votes[i, j]))
                for i in range(IN_CAPS)
            )
            slot = gru(routing.recur, taken, slots[j])
            first, _, second = routing.refine
            hidden = (first.weight @ norm(routing.update_norm, slot) + first.bias).relu()
            slots[j] = slot + second.weight @ hidden + second.bias
    return torch.stack(slots), torch.stack(c)


class TestSlotAttention(RoutingContract):
    name = "slot_attention"
    reads_out = False

    def closed_form(self, routing, votes, activations):
        samples = zip(votes, activations, strict=True)
        return torch.stack([slow_slot_attention(routing, v, a, 1)[0] for v, a in samples])


def test_a_slow_transcription_gives_the_same_result():
    torch.manual_seed(1)
    routing = create_routing("slot_attention", SHAPE).double()
    votes, a = draw(1, 6, 4, 5), draw(1, 6, seed=1).sigmoid()
    poses, coupling = slow_slot_attention(routing, votes[0], a[0], 3)
    routed = routing(votes, a)
    assert_close(routed.poses[0], poses, rtol=1e-6, atol=1e-6)
    assert_close(routed.coupling[0], coupling, rtol=1e-6, atol=1e-6)
    score = poses @ routing.score.weight[0] + routing.score.bias
    assert_close(routed.activations[0], score.sigmoid(), rtol=1e-6, atol=1e-6)


def test_an_absent_child_is_ignored():
    routing = create_routing("slot_attention", SHAPE).double()
    votes = draw(1, 6, 4, 5)
    present = torch.tensor([[1.0, 1, 1, 1, 1, 0]], dtype=torch.float64)
    moved = votes.clone()
    moved[:, 5] += draw(4, 5, seed=9)
    assert_close(routing(votes, present).poses, routing(moved, present).poses)


def test_impossible_settings_are_refused():
    with pytest.raises(UserError, match="iterations"):
        SlotAttentionRouting(SHAPE, iterations=0)
