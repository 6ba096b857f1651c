"""Checks every routing must pass; subclass, name the routing and give its closed form."""

import pytest
import torch
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from torchcaps.core import Routed, UserError
from torchcaps.routing import ReadsOut, RoutingShape, create_routing

from routing.operations import count_operations

IN_CAPS, OUT_CAPS, POSE = 6, 4, 5
SHAPE = RoutingShape(IN_CAPS, OUT_CAPS, POSE)


def draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


class RoutingContract:
    name: str
    settings: dict = {}
    one_round: dict = {"iterations": 1}  # settings that make the routing run a single round
    reads_out = True  # whether parents follow from votes, activations and couplings alone
    fewest_parents = 1
    priors: tuple[str, ...] = ()  # parameters that each child has its own of, so that its place matters

    def build(self, *, shape=SHAPE, **overrides):
        routing = create_routing(self.name, shape, **{**self.settings, **overrides}).double()
        for seed, parameter in enumerate(routing.parameters()):
            parameter.data = 0.1 * draw(*parameter.shape, seed=10 + seed)
        return routing

    def build_without_priors(self):
        routing = self.build()
        for name in self.priors:
            torch.nn.init.zeros_(routing.get_parameter(name))
        return routing

    def closed_form(self, routing, votes, activations) -> torch.Tensor:
        """Poses after one round, written down independently of the library."""
        raise AssertionError("a subclass gives the closed form")

    @pytest.fixture
    def routing(self):
        return self.build()

    @pytest.fixture
    def votes(self):
        return draw(3, IN_CAPS, OUT_CAPS, POSE)

    @pytest.fixture
    def activations(self):
        return draw(3, IN_CAPS, seed=1).sigmoid()

    def test_shapes(self, routing, votes, activations):
        routed = routing(votes, activations)
        assert routed.poses.shape == (3, OUT_CAPS, POSE)
        assert routed.activations.shape == (3, OUT_CAPS)
        assert routed.coupling.shape == (3, IN_CAPS, OUT_CAPS)

    def test_any_number_of_positions(self, routing, votes, activations):
        grid = routing(votes.expand(2, 2, -1, -1, -1, -1), activations.expand(2, 2, -1, -1))
        assert_close(grid.poses[1, 0], routing(votes, activations).poses)

    def test_each_child_splits_its_vote(self, votes, activations):
        routing = self.build_without_priors()
        coupling = routing(votes, activations).coupling
        assert_close(coupling.sum(-1), torch.ones(3, IN_CAPS, dtype=torch.float64))
        assert (coupling >= 0).all()

    def test_order_of_children_does_not_matter(self, votes, activations):
        routing = self.build_without_priors()
        order = torch.tensor([3, 0, 5, 1, 4, 2])
        shuffled = routing(votes[:, order], activations[:, order])
        assert_close(shuffled.poses, routing(votes, activations).poses)
        assert_close(shuffled.coupling, routing(votes, activations).coupling[:, order])

    def test_order_matters_only_where_it_is_declared(self, routing, votes, activations):
        order = torch.tensor([3, 0, 5, 1, 4, 2])
        same = torch.allclose(
            routing(votes[:, order], activations[:, order]).poses, routing(votes, activations).poses
        )
        assert same == (not self.priors)

    def test_samples_do_not_see_each_other(self, routing, votes, activations):
        together = routing(votes, activations)
        alone = routing(votes[:1], activations[:1])
        assert_close(together.poses[:1], alone.poses)
        assert_close(together.activations[:1], alone.activations)

    def test_gradients_are_those_of_finite_differences(self, routing, votes, activations):
        def outputs(votes, activations, *parameters):
            routed = torch.func.functional_call(
                routing, dict(zip(names, parameters, strict=True)), (votes, activations)
            )
            return routed.poses, routed.activations, routed.coupling

        names = [name for name, _ in routing.named_parameters()]
        inputs = [votes, activations, *(p.detach() for p in routing.parameters())]
        # fast mode compares random projections of the two Jacobians instead of each entry
        assert torch.autograd.gradcheck(outputs, [x.clone().requires_grad_() for x in inputs], fast_mode=True)

    def test_samples_may_be_mapped_and_differentiated_one_by_one(self, routing, votes, activations):
        def slope(votes, activations):
            return torch.func.grad(lambda votes: routing(votes, activations).poses.square().sum())(votes)

        together = torch.func.vmap(slope)(votes, activations)
        assert_close(together, slope(votes, activations))

    def test_one_round_is_the_closed_form(self, votes, activations):
        routing = self.build(**self.one_round)
        assert_close(routing(votes, activations).poses, self.closed_form(routing, votes, activations))

    def test_reading_out_its_own_couplings_changes_nothing(self, routing, votes, activations):
        assert isinstance(routing, ReadsOut) == self.reads_out
        if self.reads_out:
            routed = routing(votes, activations)
            again = routing.read_out(votes, activations, routed.coupling)
            for found, expected in zip(again, routed, strict=True):
                assert torch.equal(found, expected)

    def test_other_couplings_give_other_parents_of_the_same_kind(self, routing, votes, activations):
        if self.reads_out:
            coupling = draw(3, IN_CAPS, OUT_CAPS, seed=7).abs()
            found = routing.read_out(votes.bfloat16(), activations.bfloat16(), coupling)
            assert found.poses.dtype == torch.bfloat16
            exact = routing.read_out(votes.bfloat16().double(), activations.bfloat16().double(), coupling)
            assert_close(found.poses, exact.poses.bfloat16())
            assert not torch.allclose(exact.poses, routing(votes, activations).poses)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
    def test_dtype_is_kept_and_the_work_is_done_in_float32(self, dtype, votes, activations):
        routing = self.build().float()
        votes, activations = votes.to(dtype), activations.to(dtype)
        with torch.autocast("cpu", torch.bfloat16):
            routed = routing(votes, activations)
        exact = routing(votes.float(), activations.float())
        assert [x.dtype for x in routed] == [dtype] * 3
        assert_close(routed.poses, exact.poses.to(dtype))

    @pytest.mark.parametrize("scale", [0.0, 1e-30, 1e8], ids=["zero", "tiny", "huge"])
    def test_extreme_votes_stay_finite(self, scale, votes, activations):
        routing = self.build().float()
        votes = (votes.float() * scale).requires_grad_()
        routed = routing(votes, activations.float())
        assert all(x.isfinite().all() for x in routed)
        (routed.poses.sum() + routed.activations.sum()).backward()
        assert votes.grad.isfinite().all()

    @pytest.mark.parametrize("scale", [1e6, 1e12])
    def test_large_votes_give_what_float64_gives(self, scale, votes, activations):
        votes = (votes * scale).float()
        poses, active, _ = self.build().float()(votes, activations.float())
        exact = self.build().float().double()(votes.double(), activations.float().double())
        assert ((poses - exact.poses).abs() <= 1e-3 * exact.poses.abs().max()).all()
        assert_close(active.double(), exact.activations, rtol=1e-3, atol=1e-6)

    def test_large_votes_have_finite_gradients(self, votes, activations):
        votes = (votes * 1e12).float().requires_grad_()
        routed = self.build().float()(votes, activations.float())
        (routed.poses.mean() + routed.activations.sum()).backward()
        assert votes.grad.isfinite().all()

    def test_absent_children_stay_finite(self, routing, votes, activations):
        assert all(x.isfinite().all() for x in routing(votes, activations * 0))

    @pytest.mark.parametrize(("in_caps", "out_caps"), [(1, OUT_CAPS), (IN_CAPS, 1)])
    def test_one_child_or_one_parent_has_finite_gradients(self, in_caps, out_caps):
        if out_caps < self.fewest_parents:
            pytest.skip("refused: its parents compete")
        routing = self.build(shape=RoutingShape(in_caps, out_caps, POSE)).float()
        votes = draw(2, in_caps, out_caps, POSE, dtype=torch.float32).requires_grad_()
        activations = torch.tensor([0.0, 1.0]).unsqueeze(1).repeat(1, in_caps).requires_grad_()
        routed = routing(votes, activations)
        assert routed.poses.shape == (2, out_caps, POSE)
        assert all(x.isfinite().all() for x in routed)
        (routed.poses.sum() + routed.activations.sum()).backward()
        assert votes.grad.isfinite().all()
        assert activations.grad is None or activations.grad.isfinite().all()

    def test_equal_votes_have_finite_gradients(self, activations):
        votes = torch.full((3, IN_CAPS, OUT_CAPS, POSE), 0.7).requires_grad_()
        routed = self.build().float()(votes, activations.float())
        (routed.poses.sum() + routed.activations.sum()).backward()
        assert all(x.isfinite().all() for x in (*routed, votes.grad))

    @pytest.mark.parametrize("size", RoutingShape._fields)
    def test_parameters_of_size_one_are_not_spread(self, size, routing, votes, activations):
        shape = SHAPE._replace(**{size: self.fewest_parents if size == "out_caps" else 1})
        other = self.build(shape=shape)
        if [each.shape for each in other.parameters()] == [each.shape for each in routing.parameters()]:
            pytest.skip("it has no parameters of this size")
        with pytest.raises(UserError, match="this routing was built for sizes"):
            other(votes, activations)

    def test_zero_rounds_are_refused(self):
        if "iterations" not in self.one_round:
            pytest.skip("it has no rounds")
        with pytest.raises(UserError, match="at least 1"):
            self.build(iterations=0)

    def test_an_empty_batch_gives_an_empty_result(self, routing, votes, activations):
        routed = routing(votes[:0], activations[:0])
        assert routed.poses.shape == (0, OUT_CAPS, POSE)
        assert routed.activations.shape == (0, OUT_CAPS)

    @pytest.mark.parametrize("scale", [1, 1e4])
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
    def test_parameters_of_half_precision_work_in_float32(self, dtype, scale, votes, activations):
        votes, activations = (scale * votes).to(dtype), activations.to(dtype)
        routing = self.build().to(dtype)
        routed = routing(votes, activations)
        exact = routing.double()(votes.double(), activations.double())
        assert_close(routed.poses, exact.poses.to(dtype))

    def test_the_cost_formula_counts_the_products_that_run(self, routing, votes, activations):
        with FlopCounterMode(display=False) as counter:
            routing(votes, activations)
        assert 3 * 2 * routing.cost(SHAPE).multiply_adds == counter.get_total_flops()

    @pytest.mark.parametrize("rounds", [1, 2, 3])
    @pytest.mark.parametrize("shape", [SHAPE, RoutingShape(7, 3, 2), RoutingShape(2, 5, 9)], ids=str)
    def test_the_cost_formula_counts_the_operations_that_run(self, shape, rounds):
        routing = self.build(shape=shape, **dict.fromkeys(self.one_round, rounds))
        votes, activations = draw(1, *shape), draw(1, shape.in_caps, seed=1).sigmoid()
        assert routing.cost(shape).flops == count_operations(routing, votes, activations)

    @pytest.mark.compile
    def test_compiles_without_graph_breaks(self, routing, votes, activations):
        compiled = torch.compile(routing, fullgraph=True, backend="aot_eager")
        plain = routing(votes, activations)
        result = compiled(votes, activations)
        assert isinstance(result, Routed)
        assert_close(result.poses, plain.poses)
