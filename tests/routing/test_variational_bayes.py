import math

import torch
from torch.testing import assert_close

from torchcaps.routing import variational_bayes_routing

from routing.contract import OUT_CAPS, RoutingContract, draw


class TestVariationalBayes(RoutingContract):
    name = "variational_bayes"

    def closed_form(self, routing, votes, activations):
        assigned = activations / OUT_CAPS
        return torch.einsum("bi,biod->bod", assigned, votes) / (1 + assigned.sum(1))[:, None, None]


def digamma(x):
    return float(torch.tensor(x, dtype=torch.float64).digamma())


def slow_variational_bayes(votes, a, beta_a, beta_u, iterations):
    """One sample, one pose component at a time: the updates of a one-dimensional Gaussian-Wishart."""
    I, J, H = votes.shape
    R = [[1 / J] * J for _ in range(I)]
    for t in range(iterations):
        w = [[R[i][j] * float(a[i]) for j in range(J)] for i in range(I)]
        N = [sum(w[i][j] for i in range(I)) for j in range(J)]
        log_pi = [digamma(1 + N[j]) - digamma(sum(1 + n for n in N)) for j in range(J)]
        m, nu, psi, log_lambda = {}, {}, {}, {}
        for j in range(J):
            for h in range(H):
                v = [float(votes[i, j, h]) for i in range(I)]
                mean = sum(w[i][j] * v[i] for i in range(I)) / (N[j] + 1e-7)
                scatter = sum(w[i][j] * (v[i] - mean) ** 2 for i in range(I))
                m[j, h] = N[j] * mean / (1 + N[j])
                nu[j, h] = H + 1 + N[j]
                psi[j, h] = 1 + scatter + N[j] / (1 + N[j]) * mean**2
                log_lambda[j, h] = digamma(nu[j, h] / 2) + math.log(2 / psi[j, h])
        if t < iterations - 1:
            R = []
            for i in range(I):
                log_p = []
                for j in range(J):
                    mahalanobis = sum(
                        nu[j, h] * (float(votes[i, j, h]) - m[j, h]) ** 2 / psi[j, h] + 1 / (1 + N[j])
                        for h in range(H)
                    )
                    precision = sum(log_lambda[j, h] for h in range(H))
                    log_p.append(log_pi[j] + 0.5 * (precision - H * math.log(2 * math.pi) - mahalanobis))
                p = [math.exp(x - max(log_p)) for x in log_p]
                R.append([x / sum(p) for x in p])
    active = []
    for j in range(J):
        entropy = sum(0.5 * (1 + math.log(2 * math.pi) - log_lambda[j, h]) for h in range(H))
        cost = math.exp(log_pi[j]) * (H * float(beta_u[j]) + entropy)
        active.append(1 / (1 + math.exp(cost - float(beta_a[j]))))
    poses = torch.tensor([[m[j, h] for h in range(H)] for j in range(J)], dtype=torch.float64)
    return poses, torch.tensor(active, dtype=torch.float64), torch.tensor(R, dtype=torch.float64)


def test_a_slow_transcription_gives_the_same_result():
    votes, a = draw(1, 7, 3, 4), draw(1, 7, seed=1).sigmoid()
    beta_a, beta_u = draw(3, seed=2), draw(3, seed=3)
    routed = variational_bayes_routing(votes, a, activation_cost=beta_a, vote_cost=beta_u, iterations=3)
    poses, active, coupling = slow_variational_bayes(votes[0], a[0], beta_a, beta_u, 3)
    assert_close(routed.poses[0], poses, rtol=1e-6, atol=1e-6)
    assert_close(routed.activations[0], active, rtol=1e-6, atol=1e-6)
    assert_close(routed.coupling[0], coupling, rtol=1e-6, atol=1e-6)


def test_an_absent_child_is_ignored():
    votes = draw(1, 6, 4, 5)
    present = torch.tensor([[1.0, 1, 1, 1, 1, 0]], dtype=torch.float64)
    moved = votes.clone()
    moved[:, 5] += 100
    zeros = torch.zeros(4, dtype=torch.float64)
    first, second = (
        variational_bayes_routing(v, present, activation_cost=zeros, vote_cost=zeros) for v in (votes, moved)
    )
    assert_close(first.poses, second.poses)
    assert_close(first.activations, second.activations)


def test_a_parent_without_children_falls_back_to_its_prior():
    zeros = torch.zeros(4, dtype=torch.float64)
    none = torch.zeros(1, 6, dtype=torch.float64)
    routed = variational_bayes_routing(draw(1, 6, 4, 5), none, activation_cost=zeros, vote_cost=zeros)
    assert_close(routed.poses, torch.zeros_like(routed.poses))


def test_agreeing_votes_make_an_active_parent():
    votes = draw(1, 40, 2, 4)
    votes[:, :, 0] = 0.5 + 0.01 * votes[:, :, 0]
    votes[:, :, 1] *= 3
    zeros, ones = torch.zeros(2, dtype=torch.float64), torch.ones(1, 40, dtype=torch.float64)
    active = variational_bayes_routing(
        votes, ones, activation_cost=zeros, vote_cost=zeros, iterations=1
    ).activations[0]
    assert active[0] > active[1]
