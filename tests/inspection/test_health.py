"""The health of capsules, on layers whose numbers can be worked out by hand."""

import json
import math
from dataclasses import replace

import pytest
import torch
from torch import nn

import torchcaps
from torchcaps.core import CapsuleOutput, Capsules, LayerTrace, Routed, UserError
from torchcaps.inspection import HealthReport, Limits, watch_health
from torchcaps.inspection.health import measure_layer
from torchcaps.layers import FcCaps
from torchcaps.models import MODELS, create_model, list_models


def trace(coupling, children=None, parents=None):
    """A layer with these couplings; children are 0.5 and parents vary over the batch unless given."""
    coupling = torch.as_tensor(coupling)
    *where, in_caps, out_caps = coupling.shape
    children = torch.full((*where, in_caps), 0.5) if children is None else torch.as_tensor(children)
    if parents is None:
        parents = torch.linspace(0.2, 0.8, where[0]).view(-1, *[1] * len(where)).expand(*where, out_caps)
    parents = torch.as_tensor(parents)

    def poses(activations):
        return activations.unsqueeze(-1).expand(*activations.shape, 3)

    return LayerTrace(Capsules(poses(children), children), Routed(poses(parents), parents, coupling))


class Fixed(nn.Module):
    """A network whose routed layers are given."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = layers

    def forward(self, images, *, return_routing=False):
        routed = self.layers[-1].routed
        return CapsuleOutput(routed.activations, routed.poses, None, self.layers if return_routing else ())


def report(*layers, images=2, **limits):
    return torchcaps.inspect(Fixed(*layers), torch.rand(images, 1, 4, 4), Limits(**limits))


def problems(found):
    return [finding.partition(":")[0] for finding in found.findings]


SPLIT = [[[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6], [0.3, 0.3, 0.4]]] * 2  # (2 images, 4, 3)


def test_numbers_are_those_of_the_formulas():
    children = [[0.5, 0.005, 0.9, 0.3], [0.4, 0.001, 0.002, 0.3]]
    parents = [[0.1, 0.9, 0.002], [0.3, 0.1, 0.001]]
    layer = measure_layer(trace(SPLIT, children, parents), 0, Limits())
    assert (layer.children, layer.parents, layer.positions) == (4, 3, 1)
    assert layer.dead_children == pytest.approx(1 / 4)
    assert layer.dead_parents == pytest.approx(1 / 3)
    rows = SPLIT[0]
    entropy = -sum(c * math.log(c) for row in rows for c in row) / 4
    assert layer.tree == pytest.approx(1 - entropy / math.log(3), abs=1e-6)
    distance = sum(sum(abs(c - 1 / 3) for c in row) / 2 / (2 / 3) for row in rows) / 4
    assert layer.from_uniform == pytest.approx(distance, abs=1e-6)
    assert layer.largest_share == pytest.approx(1.5 / 4)
    assert layer.diversity == pytest.approx(0.4)  # the second parent, 0.9 and 0.1
    assert layer.activations.max == pytest.approx(0.9)
    assert layer.child_activations.min == pytest.approx(0.001)


def test_a_parent_is_starved_by_comparison_with_the_mean():
    """Of three parents the mean share is 1/3: below a tenth of that, 0.033, a parent is starved."""
    for share, starved in ((0.03, 1 / 3), (0.04, 0.0)):
        rest = (1 - share) / 2
        layer = measure_layer(trace([[[rest, rest, share]] * 4] * 2), 0, Limits())
        assert layer.starved_parents == pytest.approx(starved)


def test_a_split_without_extremes_gives_no_findings():
    found = report(trace(SPLIT))
    assert found.findings == ()
    assert str(found).endswith("nothing unusual")


def test_a_grid_capsule_is_a_type_over_all_positions():
    coupling = torch.full((2, 3, 3, 8, 2), 0.5)
    children = torch.zeros(2, 5, 5, 4)
    children[1, 4, 4, 0] = 1  # the only one that is ever awake
    parents = torch.zeros(2, 3, 3, 2)
    parents[0, 1, 2, 1] = 1
    layer = measure_layer(trace(coupling, children, parents), 0, Limits())
    assert (layer.children, layer.parents, layer.positions) == (4, 2, 9)
    assert layer.dead_children == 0.75
    assert layer.dead_parents == 0.5
    assert layer.diversity == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("scale", "rest"), [(0.1, 0.0), (1.0, -0.3)], ids=["split over positions as well", "negative prior"]
)
def test_couplings_that_are_no_split_are_made_one(scale, rest):
    coupling = torch.tensor(SPLIT) * scale
    coupling[:, 0] = torch.tensor([rest, scale, rest])
    layer = measure_layer(trace(coupling), 0, Limits())
    expected = torch.tensor(SPLIT)
    expected[:, 0] = torch.tensor([0.0, 1.0, 0.0])
    plain = measure_layer(trace(expected), 0, Limits())
    assert layer.tree == pytest.approx(plain.tree, abs=1e-6)
    assert layer.from_uniform == pytest.approx(plain.from_uniform, abs=1e-6)


def test_an_even_split_and_a_tree_are_the_ends_of_the_scale():
    even = measure_layer(trace(torch.full((2, 4, 5), 0.2)), 0, Limits())
    tree = measure_layer(trace(torch.eye(4).expand(2, 4, 4)), 0, Limits())
    assert even.tree == pytest.approx(0, abs=1e-6)
    assert even.from_uniform == pytest.approx(0, abs=1e-6)
    assert tree.tree == pytest.approx(1)
    assert tree.from_uniform == pytest.approx(1)


def test_a_child_that_gives_nothing_counts_as_undecided():
    layer = measure_layer(trace(torch.zeros(2, 4, 5)), 0, Limits())
    assert layer.from_uniform == pytest.approx(0, abs=1e-6)


def test_starved_and_dead_capsules_are_said_to_be_expected_where_a_network_is_pruned():
    starving = trace(torch.tensor([0.5, 0.49, 0.01]).expand(2, 4, 3))
    for layer in (starving, trace(SPLIT, children=torch.full((2, 4), 1e-4))):
        (finding,) = report(layer).findings
        assert "expected while pruning (REM) cuts capsules off, else try" in finding


def test_each_problem_is_named_with_its_layers():
    even = trace(torch.full((2, 4, 3), 1 / 3))
    assert problems(report(even, trace(SPLIT), even)) == ["couplings are uniform"]
    assert "routed layers 0 and 2" in report(even, trace(SPLIT), even).findings[0]
    one_parent = torch.tensor([0.96, 0.02, 0.02]).expand(2, 4, 3)
    assert problems(report(trace(one_parent))) == ["couplings have collapsed"]
    starving = torch.tensor([0.5, 0.49, 0.01]).expand(2, 4, 3)
    assert problems(report(trace(starving))) == ["parents are starved"]
    asleep = torch.full((2, 4), 1e-4)
    assert problems(report(trace(SPLIT, children=asleep))) == ["children are dead"]
    silent = torch.tensor([[0.5, 0.001, 0.9], [0.3, 0.001, 0.2]])
    assert problems(report(trace(SPLIT, parents=silent))) == ["parents are dead"]
    assert problems(report(trace(SPLIT, parents=torch.full((2, 3), 0.5)))) == ["every image looks alike"]
    broken = torch.full((2, 3), float("nan"))
    assert problems(report(trace(SPLIT, parents=broken))) == ["values are not finite"]


def test_activations_that_vanish_are_followed_through_the_layers():
    fading = [trace(SPLIT, parents=torch.rand(2, 3) * 0.1**depth) for depth in range(4)]
    found = report(*fading, dead=0.0, alike=0.0)
    assert problems(found) == ["activations vanish with depth"]
    assert "from 0.5 before routed layer 0" in found.findings[0]
    assert "after layer 2" in found.findings[0]


def test_a_single_image_cannot_look_alike():
    assert report(trace(SPLIT[:1]), images=1).findings == ()


def test_a_single_parent_leaves_no_choice():
    found = report(trace(torch.ones(2, 4, 1)))
    assert found.findings == ()
    assert found.layers[0].tree == 0


def test_a_stack_with_small_matrices_is_found_out():
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(FcCaps(8, 8, 4, 4, init_std=0.01) for _ in range(4))
            for layer in self.layers:
                nn.init.zeros_(layer.routing.bias)

        def forward(self, images, *, return_routing):
            capsules = Capsules(images.flatten(1).unflatten(1, (8, 4)), torch.ones(len(images), 8))
            traces = []
            for layer in self.layers:
                traces.append(LayerTrace(capsules, layer(capsules)))
                capsules = traces[-1].routed.capsules
            return CapsuleOutput(capsules.activations, capsules.poses, None, tuple(traces))

    found = torchcaps.inspect(Stack(), torch.rand(8, 2, 4, 4))
    assert {"couplings are uniform", "parents are dead", "activations vanish with depth"} <= set(
        problems(found)
    )


@pytest.mark.parametrize("name", list_models("*_tiny_test"))
def test_every_model_can_be_inspected(name):
    model = create_model(name)
    config = MODELS[name].config
    images = torch.rand(4, config.in_channels, config.image_size, config.image_size)
    found = torchcaps.inspect(model, images)
    plain = json.loads(found.to_json())
    assert plain["images"] == 4
    assert [layer["layer"] for layer in plain["layers"]] == list(range(len(found.layers)))
    for layer in found.layers:
        for share in ("dead_children", "dead_parents", "starved_parents", "from_uniform", "tree"):
            assert 0 <= getattr(layer, share) <= 1 + 1e-6, share
        assert layer.activations.min <= layer.activations.mean <= layer.activations.max
    assert len(str(found).splitlines()) >= 2 + len(found.layers)


def test_a_network_without_routed_layers_says_so():
    model = create_model("conv_baseline_tiny_test")
    images = torch.rand(4, *model.image_shape)
    found = torchcaps.inspect(model, images)
    assert found.layers == ()
    assert "no routed layers" in str(found)
    assert found.summary() == {}
    assert watch_health(model, images) == {}


def test_the_model_and_the_random_stream_are_left_as_they_were():
    model = create_model("dr_capsnet_tiny_test")
    model.primary.eval()
    modes = [module.training for module in model.modules()]
    state = {name: values.clone() for name, values in model.state_dict().items()}
    stream = torch.get_rng_state()
    torchcaps.inspect(model, torch.rand(4, *model.image_shape, generator=torch.Generator().manual_seed(0)))
    assert [module.training for module in model.modules()] == modes
    assert all(torch.equal(values, state[name]) for name, values in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), stream)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_training_loop_gets_flat_numbers_and_findings_only_where_there_are_any():
    noted = watch_health(Fixed(trace(SPLIT)), torch.rand(2, 1, 4, 4))
    assert set(noted) == {"health"}
    assert {"dead_children", "dead_parents", "coupling_from_uniform"} <= set(noted["health"])
    assert all(isinstance(value, float) for value in noted["health"].values())
    even = watch_health(Fixed(trace(torch.full((2, 4, 3), 1 / 3))), torch.rand(2, 1, 4, 4))
    assert [finding.partition(":")[0] for finding in even["findings"]] == ["couplings are uniform"]


def test_what_is_not_finite_stays_out_of_json():
    broken = trace(SPLIT, parents=torch.full((2, 3), float("nan")))
    found = report(broken)
    assert json.loads(found.to_json())["layers"][0]["activations"]["mean"] is None
    assert "activation_mean" not in found.summary()
    assert "coupling_from_uniform" in found.summary()


def test_the_table_lists_layers_and_findings():
    grid = trace(torch.rand(2, 3, 3, 4, 2))
    text = str(report(grid, trace(torch.full((2, 4, 3), 1 / 3))))
    lines = text.splitlines()
    assert lines[0] == "routed layers: 2, images: 2"
    assert lines[1].split()[0] == "layer"
    assert "2 x 9" in lines[2]
    assert lines[-1].startswith("- couplings are uniform")


def test_mistakes_are_explained():
    with pytest.raises(UserError, match="no images to inspect"):
        report(trace(SPLIT), images=0)
    mute = trace(SPLIT)
    mute = LayerTrace(mute.children, mute.routed._replace(coupling=None))
    with pytest.raises(UserError, match="routed layer 0 kept no couplings"):
        report(mute)


def test_a_network_that_hides_its_layers_is_told_what_to_return():
    class Hiding(nn.Module):
        def forward(self, images, *, return_routing=False):
            return images, images

    with pytest.raises(UserError, match=r"LayerTrace\(children, routed\).*returns a tuple"):
        torchcaps.inspect(Hiding(), torch.rand(2, 1, 4, 4))


def test_a_network_that_cannot_be_asked_for_its_layers_is_told_what_to_take():
    with pytest.raises(UserError, match="forward of Sequential takes no return_routing=True"):
        torchcaps.inspect(nn.Sequential(nn.Flatten()), torch.rand(2, 1, 4, 4))


def test_a_mistake_inside_a_network_keeps_its_own_words():
    class Broken(nn.Module):
        def forward(self, images, *, return_routing=False):
            return len(3)

    with pytest.raises(TypeError, match="has no len"):
        torchcaps.inspect(Broken(), torch.rand(2, 1, 4, 4))


def test_limits_are_part_of_the_report():
    found = report(trace(SPLIT), dead=0.3)
    assert isinstance(found, HealthReport)
    assert found.limits == replace(Limits(), dead=0.3)
    assert json.loads(found.to_json())["limits"]["dead"] == 0.3


def test_the_summary_is_of_the_last_layer():
    parents = [[0.1, 0.9, 0.002], [0.3, 0.1, 0.004]]
    noted = report(trace(torch.full((2, 5, 4), 0.25)), trace(SPLIT, parents=parents)).summary()
    distance = sum(sum(abs(c - 1 / 3) for c in row) / 2 / (2 / 3) for row in SPLIT[0]) / 4
    assert noted.pop("coupling_from_uniform") == pytest.approx(distance, abs=1e-6)
    entropy = -sum(c * math.log(c) for row in SPLIT[0] for c in row) / 4
    assert noted.pop("tree") == pytest.approx(1 - entropy / math.log(3), abs=1e-6)
    assert noted == pytest.approx(
        {
            "dead_children": 0,
            "dead_parents": 1 / 3,
            "starved_parents": 0,
            "diversity": 0.4,
            "activation_mean": 1.406 / 6,
            "activation_max": 0.9,
        },
        abs=1e-6,
    )


def test_the_activations_in_the_table_are_those_of_parents():
    parents = [[0.125, 0.75, 0.25], [0.5, 0.25, 0.375]]
    titles, cells = (
        line.split("  ") for line in str(report(trace(SPLIT, parents=parents))).splitlines()[1:3]
    )
    row = dict(zip([t.strip() for t in titles if t], [c.strip() for c in cells if c], strict=True))
    assert (row["activation"], row["min"], row["max"]) == ("0.375", "0.125", "0.75")


@pytest.mark.parametrize(("dead", "is_found"), [(2, False), (3, True)])
def test_half_of_the_children_may_be_dead(dead, is_found):
    """Empty corners of an image are usual."""
    children = torch.full((2, 4), 0.5)
    children[:, :dead] = 1e-4
    assert problems(report(trace(SPLIT, children=children))) == ["children are dead"] * is_found
