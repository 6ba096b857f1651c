import math

import pytest
import torch
from torch.testing import assert_close

from torchcaps.core import UserError
from torchcaps.layers import positional_em_routing
from torchcaps.routing import EMRouting, em_rotation_routing, em_routing
from torchcaps.routing.em import EMCosts, EMSettings

from routing.contract import OUT_CAPS, SHAPE, RoutingContract, draw


class TestEMRouting(RoutingContract):
    name = "em"

    def closed_form(self, routing, votes, activations):
        return torch.einsum("bi,biod->bod", activations, votes) / (activations.sum(1) + 4e-7)[:, None, None]


def costs(out_caps=OUT_CAPS):
    zeros = torch.zeros(out_caps, dtype=torch.float64)
    return {"activation_cost": zeros, "vote_cost": zeros}


def slow_em(votes, a, beta_a, beta_u, iterations, inverse_temperature=1.0, eps=0.1):
    """One sample, plain loops, densities not in logs."""
    I, J, H = votes.shape
    R = [[1 / J] * J for _ in range(I)]
    for t in range(iterations):
        lam = inverse_temperature * (1 - 0.95 ** (t + 1))
        mu, s2, act = [], [], []
        for j in range(J):
            w = [R[i][j] * float(a[i]) for i in range(I)]
            m = sum(w) + 1e-7
            mean = [sum(w[i] * float(votes[i, j, h]) for i in range(I)) / m for h in range(H)]
            var = [
                sum(w[i] * (float(votes[i, j, h]) - mean[h]) ** 2 for i in range(I)) / m + eps
                for h in range(H)
            ]
            cost = sum((float(beta_u[j]) + 0.5 * math.log(v)) * m * J / I for v in var)
            act.append(1 / (1 + math.exp(-lam * (float(beta_a[j]) - cost))))
            mu.append(mean)
            s2.append(var)
        used = R
        R = []
        for i in range(I):
            p = [
                act[j]
                * math.prod(
                    math.exp(-((float(votes[i, j, h]) - mu[j][h]) ** 2) / (2 * s2[j][h]))
                    / math.sqrt(2 * math.pi * s2[j][h])
                    for h in range(H)
                )
                for j in range(J)
            ]
            R.append([x / sum(p) for x in p])
    return torch.tensor(mu), torch.tensor(act), torch.tensor(used)


def test_a_slow_transcription_of_the_paper_gives_the_same_result():
    votes, a = draw(1, 7, 3, 4), draw(1, 7, seed=1).sigmoid()
    beta_a, beta_u = draw(3, seed=2), draw(3, seed=3)
    routed = em_routing(votes, a, activation_cost=beta_a, vote_cost=beta_u, iterations=3)
    mean, active, coupling = slow_em(votes[0], a[0], beta_a, beta_u, 3)
    assert_close(routed.poses[0], mean.double())
    assert_close(routed.activations[0], active.double())
    assert_close(routed.coupling[0], coupling.double())


def test_an_absent_child_is_ignored():
    """Public code that renormalises couplings after weighting them cancels the activations."""
    votes = draw(1, 6, 4, 5)
    present = torch.tensor([[1.0, 1, 1, 1, 1, 0]], dtype=torch.float64)
    moved = votes.clone()
    moved[:, 5] += 100
    # the even-split normaliser counts all children, so the comparison keeps six of them
    first, second = (em_routing(v, present, **costs()) for v in (votes, moved))
    assert_close(first.poses, second.poses)
    assert_close(first.activations, second.activations)


def test_the_temperature_falls_with_each_step():
    votes, a = draw(1, 6, 4, 5), torch.ones(1, 6, dtype=torch.float64)
    hot = em_routing(votes, a, **costs(), iterations=1, inverse_temperature=1.0)
    logit = hot.activations.logit()
    cold = em_routing(votes, a, **costs(), iterations=1, inverse_temperature=2.0)
    assert_close(cold.activations.logit(), 2 * logit)


def test_a_parent_with_one_child_has_finite_gradients():
    votes = draw(1, 1, 2, 5).requires_grad_()
    em_routing(votes, torch.ones(1, 1, dtype=torch.float64), **costs(2)).activations.sum().backward()
    assert votes.grad.isfinite().all()


def test_agreeing_votes_make_an_active_parent():
    votes = draw(1, 20, 2, 4)
    votes[:, :, 0] = 0.5 + 0.01 * votes[:, :, 0]
    active = em_routing(votes, torch.ones(1, 20, dtype=torch.float64), **costs(2)).activations[0]
    assert active[0] > active[1]


def test_costs_are_one_per_parent_and_start_at_zero():
    assert [p.tolist() for p in EMRouting(SHAPE).parameters()] == [[0.0] * OUT_CAPS] * 2


def test_settings_of_zero_rounds_are_refused():
    votes, activations = draw(1, 9, OUT_CAPS, 4), torch.ones(1, 9, dtype=torch.float64)
    fixed = {"costs": EMCosts(*costs().values()), "settings": EMSettings(iterations=0)}
    with pytest.raises(UserError, match="at least 1"):
        em_rotation_routing(votes, activations, **fixed)
    with pytest.raises(UserError, match="at least 1"):
        positional_em_routing(votes[None, None], activations[None, None], kernel_size=3, stride=1, **fixed)
