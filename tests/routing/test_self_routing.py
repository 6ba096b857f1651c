import torch
from torch.testing import assert_close

from torchcaps.core import Capsules
from torchcaps.layers import FcCaps
from torchcaps.routing import SelfRouting, self_routing

from routing.contract import IN_CAPS, OUT_CAPS, POSE, SHAPE, RoutingContract, draw


class TestSelfRouting(RoutingContract):
    name = "self_routing"
    one_round = {}
    priors = ("keys", "bias")

    def closed_form(self, routing, votes, activations):
        poses = torch.zeros(3, OUT_CAPS, POSE, dtype=torch.float64)
        for sample in range(3):
            c = [
                torch.stack([votes[sample, i, j] @ routing.keys[i, j] for j in range(OUT_CAPS)])
                for i in range(IN_CAPS)
            ]
            c = torch.stack([(c[i] + routing.bias[i]).softmax(0) for i in range(IN_CAPS)])
            for j in range(OUT_CAPS):
                weights = activations[sample] * c[:, j]
                poses[sample, j] = (weights[:, None] * votes[sample, :, j]).sum(0) / weights.sum()
        return poses


def test_activations_are_shares_of_the_active_children():
    votes, a = draw(2, 6, 4, 5), draw(2, 6, seed=1).sigmoid()
    routed = self_routing(votes, a, keys=draw(6, 4, 5, seed=2), bias=draw(6, 4, seed=3))
    expected = torch.einsum("bi,bio->bo", a, routed.coupling) / a.sum(1, keepdim=True)
    assert_close(routed.activations, expected, rtol=1e-6, atol=1e-7)
    assert_close(routed.activations.sum(-1), torch.ones(2, dtype=torch.float64), rtol=1e-6, atol=1e-6)


def test_even_couplings_make_all_parents_equally_active():
    votes, a, even = draw(2, 6, 4, 5), draw(2, 6, seed=1).sigmoid(), torch.full((2, 6, 4), 0.25).double()
    activations = SelfRouting(SHAPE).double().read_out(votes, a, even).activations
    assert_close(activations, torch.full_like(activations, 0.25), rtol=1e-6, atol=1e-7)


def test_it_starts_from_an_even_split():
    routed = SelfRouting(SHAPE).double()(draw(2, 6, 4, 5), torch.ones(2, 6, dtype=torch.float64))
    assert_close(routed.coupling, torch.full_like(routed.coupling, 1 / 4))


def test_its_logits_can_be_any_linear_function_of_the_child():
    """The paper's logits read the pose; keys that undo the vote matrices give the same ones."""
    layer = FcCaps(6, 4, 3, 5, routing="self_routing").double()
    poses, wanted = draw(2, 6, 3), draw(6, 3, 4, seed=4)
    undo = torch.linalg.pinv(layer.weight.detach().permute(0, 2, 1, 3))  # (children, parents, out, in)
    layer.routing.keys.data = torch.einsum("iodp,ipo->iod", undo, wanted)
    coupling = layer(Capsules(poses, torch.ones(2, 6, dtype=torch.float64))).coupling
    assert_close(coupling, torch.einsum("bip,ipo->bio", poses, wanted).softmax(-1))
