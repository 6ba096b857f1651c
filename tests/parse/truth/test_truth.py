"""Metrics on ground truth are exact on cases made by hand."""

import math

import pytest
import torch
from torch.testing import assert_close

from torchcaps.core.types import Capsules, LayerTrace, Routed
from torchcaps.data.synthetic.partwhole import build_tree
from torchcaps.layers import ReceptiveField
from torchcaps.parse import CapsuleMap, Edge
from torchcaps.parse.truth import (
    compare_trees,
    equivariance_error,
    evidence_shares,
    measure_agreement,
    owners_of_capsules,
    part_purity,
)

OBJECT = build_tree((2,))  # parts 0 and 1, the object 2
SCENE = build_tree((2, 2))  # parts 0..3, objects 4 and 5, the scene 6


def edge(layer, child, parent, weight=1.0):
    return Edge(layer, child, parent, coupling=weight, contribution=weight)


def test_shares_of_a_map_by_hand():
    maps = torch.tensor([[[3.0, 1.0], [0.0, -5.0]], [[0.0, 0.0], [1.0, 1.0]]])
    is_object = torch.tensor([[[True, False], [False, True]], [[True, False], [True, False]]])
    is_clutter = torch.tensor([[[False, True], [False, False]], [[False, False], [False, True]]])
    shares = evidence_shares(maps, is_object, is_clutter)
    assert shares == pytest.approx(((0.75 + 0.5) / 2, (0.25 + 0.5) / 2, 0.0))


def test_a_map_of_ones_has_the_shares_of_the_areas_and_empty_maps_do_not_count():
    is_object = torch.zeros(2, 4, 4, dtype=torch.bool)
    is_object[:, :2, :2] = True
    maps = torch.ones(2, 4, 4)
    maps[1] = 0
    shares = evidence_shares(maps, is_object, ~is_object)
    assert shares[:2] == pytest.approx((0.25, 0.75))
    assert math.isnan(evidence_shares(0 * maps, is_object, ~is_object).on_object)


def test_a_capsule_looks_at_the_pixel_in_the_middle_of_its_field():
    owners = torch.arange(36).view(1, 6, 6)
    field = ReceptiveField((1.0, 2.0), 2, 3)
    found = owners_of_capsules(owners, [CapsuleMap((2, 2, 2), field)])
    assert found.tolist() == [[8, 8, 10, 10, 20, 20, 22, 22]]


def test_purity_of_types_that_keep_to_one_part_and_of_types_that_do_not():
    owners = torch.tensor([[1, 1, 2, 2], [2, 2, 1, 1]])
    pure = torch.tensor([[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]])
    types = torch.tensor([0, 1, 0, 1])
    assert part_purity(pure, owners, types, 2) == (1.0, 0.5)
    assert part_purity(torch.ones(2, 4), owners, types, 2) == (0.5, 0.5)
    mixed = torch.tensor([[3.0, 1.0, 1.0, 3.0], [1.0, 3.0, 3.0, 1.0]])
    assert part_purity(mixed, owners, types, 2) == (0.75, 0.5)


def test_capsules_on_clutter_and_background_do_not_count_in_purity():
    owners = torch.tensor([[0, 1, 3, 2]])
    types = torch.tensor([0, 0, 0, 1])
    assert part_purity(torch.tensor([[9.0, 1.0, 9.0, 1.0]]), owners, types, 2) == (1.0, 0.5)


def test_a_tree_of_one_layer_by_hand():
    looks_at = [0, 0, 1, -1]  # two capsules on the first part, one on the second, one on clutter
    full = measure_agreement([edge(0, child, 7) for child in (0, 2)], looks_at, OBJECT)
    assert full == (1.0, 1.0)
    half = measure_agreement([edge(0, child, 7) for child in (0, 1, 3)], looks_at, OBJECT)
    assert half == pytest.approx((2 / 3, 0.5))
    assert measure_agreement([edge(0, 3, 7)], looks_at, OBJECT) == (0.0, 0.0)
    assert measure_agreement([], looks_at, OBJECT).recall == 0


def test_a_hidden_capsule_stands_for_what_most_of_it_is_made_of():
    looks_at = [0, 1, -1]
    parts = [edge(0, 0, 0), edge(0, 1, 1), edge(1, 0, 9), edge(1, 1, 9)]
    assert measure_agreement(parts, looks_at, OBJECT) == (1.0, 1.0)
    # the third capsule, on clutter, outweighs the second part in hidden capsule 1
    spoiled = [*parts, edge(0, 2, 1, 5.0)]
    assert measure_agreement(spoiled, looks_at, OBJECT) == pytest.approx((2 / 5, 0.5))


def test_a_hidden_capsule_without_carved_children_stands_for_nothing():
    found = measure_agreement([edge(0, 0, 0), edge(1, 0, 9), edge(1, 1, 9)], [0, 1], OBJECT)
    assert found == pytest.approx((2 / 3, 0.5))


def test_objects_of_a_scene_are_found_by_hidden_capsules():
    looks_at = [0, 1, 2, 3]
    objects = [edge(0, 0, 0), edge(0, 1, 0), edge(0, 2, 1), edge(0, 3, 1)]
    classes = [edge(1, 0, 5), edge(1, 1, 5)]
    assert measure_agreement(objects + classes, looks_at, SCENE) == (1.0, 1.0)
    # a network that puts parts of different objects together has right edges, but no objects
    crossed = [edge(0, 0, 0), edge(0, 2, 0), edge(0, 1, 1), edge(0, 3, 1)]
    assert measure_agreement(crossed + classes, looks_at, SCENE).recall == 0
    # one routed layer leads from parts to the scene and skips the objects
    flat = [edge(0, child, 5) for child in range(4)]
    assert measure_agreement(flat, looks_at, SCENE) == (1.0, 0.0)


def traces(coupling, activations):
    batch, children, parents = coupling.shape
    poses = torch.zeros(batch, children, 2)
    routed = Routed(torch.zeros(batch, parents, 2), torch.eye(parents)[:1].expand(batch, -1), coupling)
    return [LayerTrace(Capsules(poses, activations), routed)]


def test_couplings_that_know_the_object_beat_an_even_split_which_sees_activations_alone():
    owners = torch.tensor([1, 2, 3, 0])  # two parts, clutter, background
    coupling = torch.tensor([[[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.1, 0.9]]])
    activations = torch.tensor([[0.5, 0.5, 0.9, 0.8]])
    found = compare_trees(traces(coupling, activations), 0, owners, OBJECT, top=2)
    assert found.carved == (1.0, 1.0)
    assert found.even == (0.0, 0.0)


@pytest.mark.slow
def test_random_trees_have_the_precision_of_chance():
    owners = torch.tensor([1, 2] * 10 + [0] * 60)
    layers = traces(torch.full((1, 80, 2), 0.5), torch.ones(1, 80))
    found = [compare_trees(layers, 0, owners, OBJECT, top=8, seed=seed).random for seed in range(150)]
    precision = torch.tensor([each.precision for each in found])
    assert abs(float(precision.mean()) - 0.25) < 4 * float(precision.std()) / len(found) ** 0.5


def test_a_pose_that_turns_with_the_image_has_no_equivariance_error():
    rng = torch.Generator().manual_seed(0)
    poses = torch.randn(120, 3, generator=rng)
    labels = torch.arange(120) % 2
    turns = torch.randn(2, 3, 3, generator=rng)
    moved = torch.einsum("nd,nde->ne", poses, turns[labels]) + labels[:, None]
    assert equivariance_error(poses, moved, labels) < 1e-10


def test_poses_that_have_nothing_to_do_with_each_other_have_an_error_of_about_one():
    rng = torch.Generator().manual_seed(0)
    poses, moved = torch.randn(2, 4000, 3, generator=rng)
    error = equivariance_error(poses, moved, torch.zeros(4000, dtype=torch.int64))
    assert_close(error, 1.0, atol=0.02, rtol=0)


def test_too_few_images_are_refused():
    with pytest.raises(ValueError, match="give more images"):
        equivariance_error(torch.rand(4, 3), torch.rand(4, 3), torch.zeros(4, dtype=torch.int64))
