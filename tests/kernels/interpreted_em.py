"""The kernels of EM and map routing in Triton's interpreter; `test_triton.py` runs this file on its own."""

import pytest
import torch

from torchcaps.core import Capsules
from torchcaps.kernels import em, em_triton, fused_map_routing, votes_dynamic, votes_dynamic_triton
from torchcaps.layers import LocalConvCaps2d, LocalDeconvCaps2d

from kernels import em_reference, map_reference
from kernels.em_reference import EMCase
from kernels.interpreter import repair_interpreter
from kernels.layer_reference import assert_as_accurate_as_the_plain_layer
from kernels.map_reference import MapCase, assert_as_accurate_as_the_plain_function
from kernels.poison import poison_fresh_memory

# of a sum without a term, NumPy warns where a GPU does not
pytestmark = pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch):
    repair_interpreter(monkeypatch)
    poison_fresh_memory(monkeypatch)
    for module in (em, votes_dynamic):
        monkeypatch.setattr(module, "_KERNEL_DEVICE", "cpu")


@pytest.mark.parametrize("case", em_reference.QUICK.values(), ids=em_reference.QUICK)
def test_em_is_as_accurate_as_the_plain_layer(case):
    assert_as_accurate_as_the_plain_layer(case, seeds=1)


@pytest.mark.slow
@pytest.mark.parametrize("case", em_reference.CASES.values(), ids=em_reference.CASES)
def test_em_is_as_accurate_as_the_plain_layer_in_many_shapes(case):
    assert_as_accurate_as_the_plain_layer(case, seeds=3)


def test_types_split_among_programs_and_windows_among_chunks_join_without_a_seam(monkeypatch):
    tiles = em_triton.Tiles(fit=em_triton.Tile(16, 2, 1), votes=em_triton.Tile(8, 2, 1))
    monkeypatch.setattr(em_triton, "choose_tiles", lambda *sizes: tiles)
    monkeypatch.setattr(em_triton, "_VOTE_BYTES", 4 * 18 * 4 * 3)  # one window at a time
    assert_as_accurate_as_the_plain_layer(EMCase(batch=1, height=3, width=5, iterations=2), seeds=1)


@pytest.mark.parametrize("case", map_reference.QUICK.values(), ids=map_reference.QUICK)
def test_map_routing_is_as_accurate_as_the_plain_function(case):
    assert_as_accurate_as_the_plain_function(case, seeds=1)


@pytest.mark.slow
@pytest.mark.parametrize("case", map_reference.CASES.values(), ids=map_reference.CASES)
def test_map_routing_is_as_accurate_as_the_plain_function_in_many_shapes(case):
    assert_as_accurate_as_the_plain_function(case)


def test_a_program_may_take_several_positions(monkeypatch):
    monkeypatch.setattr(votes_dynamic_triton, "choose_tile", lambda *sizes: votes_dynamic_triton.Tile(4, 1))
    assert_as_accurate_as_the_plain_function(MapCase(positions=7), seeds=1)


def test_long_votes_and_zero_votes_stay_finite():
    for scale in (0.0, 1e4):
        votes, bias = (scale * x.detach() for x in MapCase(batch=1, positions=2).inputs())
        inputs = votes.requires_grad_(), bias.requires_grad_()
        routed = fused_map_routing(*inputs)
        gradients = torch.autograd.grad(routed, inputs, [torch.ones_like(x) for x in routed])
        assert all(x.isfinite().all() for x in (*routed, *gradients))


def test_half_precision_votes_are_routed_in_float32():
    votes, bias = (x.detach() for x in MapCase(batch=1, positions=2).inputs())
    votes = votes.bfloat16()
    poses, lengths = fused_map_routing(votes, bias)
    exact = map_reference.plain_map_routing(votes.double(), bias.double())
    torch.testing.assert_close((poses, lengths), tuple(x.float() for x in exact))


@pytest.mark.parametrize(("kind", "checkpoint"), [(LocalConvCaps2d, True), (LocalDeconvCaps2d, False)])
def test_a_local_layer_answers_the_same_with_the_kernel(kind, checkpoint):
    torch.manual_seed(0)
    layer = kind(2, 3, 4, 5, kernel_size=4, stride=2, checkpoint=checkpoint)
    children = Capsules(torch.randn(1, 2, 4, 2, 4), torch.rand(1, 2, 4, 2))
    results = []
    for backend in ("torch", "fused"):
        layer.backend = backend
        routed = layer(children, return_coupling=False)
        loss = routed.poses.square().sum() + routed.activations.sum()
        results.append([*routed[:2], *torch.autograd.grad(loss, list(layer.parameters()))])
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_the_operators_announce_the_shapes_they_return():
    children = torch.rand(4, 3, 4), torch.rand(4, 3)
    costs = torch.rand(2), torch.rand(2)
    settings = [1, 1, 1, 1], 2, [1.0, 0.1, 1.5]
    checks = {"test_utils": ("test_schema", "test_faketensor")}
    torch.library.opcheck(em._em_op, (*children, torch.rand(3, 2, 2, 2), None, *costs, *settings), **checks)
    votes, bias = (x.detach() for x in MapCase(batch=1, positions=2).inputs())
    torch.library.opcheck(votes_dynamic._map_routing_op, (votes, bias, 2, True, False), **checks)
