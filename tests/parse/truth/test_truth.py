"""Metrics on ground truth are exact on cases made by hand."""

import math

import pytest
import torch
from torch.testing import assert_close

from torchcaps.core.types import Capsules, LayerTrace, Routed
from torchcaps.data.synthetic.partwhole.grammar import build_tree
from torchcaps.layers import ReceptiveField
from torchcaps.parse import CapsuleMap, Edge
from torchcaps.parse.truth import compare_trees, equivariance_error, evidence_shares, part_purity
from torchcaps.parse.truth.agreement import measure_agreement, with_even_couplings
from torchcaps.parse.truth.owners import owners_of_capsules

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


def test_the_middle_between_two_pixels_is_the_first_and_nobody_looks_out_of_the_image():
    owners = torch.arange(36).view(1, 6, 6)
    found = owners_of_capsules(owners, [CapsuleMap((2, 3, 1), ReceptiveField((0.5, 1.4), 2, 3))])
    assert found.tolist() == [[1, 3, 5, 13, 15, 17]]  # rows 0.5 and 2.5, columns 1.4, 3.4 and 5.4
    beyond = owners_of_capsules(owners, [CapsuleMap((2, 2, 1), ReceptiveField((4.0, -2.0), 2, 3))])
    assert beyond.tolist() == [[24, 24, 30, 30]]  # rows 4 and 6, columns -2 and 0


def test_purity_of_two_types_over_three_parts_by_hand():
    owners = torch.tensor([[1, 2, 1, 3], [2, 2, 0, 4]])
    types = torch.tensor([0, 0, 1, 1])
    activations = torch.tensor([[1.0, 2.0, 1.0, 1.0], [2.5, 0.5, 9.0, 9.0]])
    # type 0 spends 1, 5 and 0 on the three parts, type 1 spends 1, 0 and 1
    assert part_purity(activations, owners, types, 3) == pytest.approx(((5 + 1) / 8, 5 / 8))


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


def test_what_a_hidden_capsule_is_made_of_is_weighed_by_contributions_above_zero():
    looks_at = [0, -1, -1, 1]
    made = [Edge(0, 0, 0, 0.1, 5.0), Edge(0, 1, 0, 0.9, 1.0), Edge(0, 2, 0, 0.9, 1.0)]
    # five of seven come from the first part: its edge is right, and so is that of the hidden capsule
    found = measure_agreement([*made, edge(1, 0, 9)], looks_at, OBJECT)
    assert found == pytest.approx((2 / 4, 1 / 2))
    # two of five come from a part; what pulls the other way does not lessen the rest
    mixed = [Edge(0, 0, 0, 0.5, 2.0), Edge(0, 1, 0, 0.5, 3.0), Edge(0, 3, 0, 0.5, -4.0)]
    assert measure_agreement([*mixed, edge(1, 0, 9)], looks_at, OBJECT) == (0.0, 0.0)


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


def test_each_image_of_a_batch_has_its_own_class_couplings_and_activations():
    owners = torch.tensor([1, 2, 3, 0])
    coupling = torch.tensor(
        [
            [[0.4, 0.6], [0.4, 0.6], [0.6, 0.4], [0.7, 0.3]],
            [[0.1, 0.9], [0.2, 0.8], [0.9, 0.1], [0.9, 0.1]],  # class 1 gets the parts
        ]
    )
    activations = torch.tensor([[0.2, 0.1, 0.9, 0.95], [0.5, 0.5, 0.9, 0.8]])
    poses, lengths = torch.zeros(2, 4, 2), torch.tensor([[0.9, 0.1], [0.1, 0.9]])
    layers = [LayerTrace(Capsules(poses, activations), Routed(torch.zeros(2, 2, 2), lengths, coupling))]
    first, second = (compare_trees(layers, sample, owners, OBJECT, top=2) for sample in (0, 1))
    assert (first.carved, first.even) == ((0.0, 0.0), (0.0, 0.0))  # 0.08, 0.04, 0.54, 0.665
    assert (second.carved, second.even) == ((1.0, 1.0), (0.0, 0.0))  # 0.45, 0.4, 0.09, 0.08
    other = layers[0]._replace(children=Capsules(poses, activations.flip(0)))
    assert compare_trees([other], 1, owners, OBJECT, top=2).carved == (0.5, 0.5)  # 0.18, 0.08, 0.09, 0.095


def test_an_even_layer_splits_every_child_over_its_parents():
    (layer,) = traces(torch.rand(1, 4, 3), torch.rand(1, 4))
    even = with_even_couplings(layer)
    assert_close(even.routed.coupling, torch.full((1, 4, 3), 1 / 3))
    assert even.children is layer.children


def test_random_trees_follow_neither_activations_nor_the_order_of_capsules():
    owners = torch.tensor([0] * 8 + [1] * 72)
    activations = torch.full((2, 80), 0.01)
    activations[:, :8] = 1.0  # on the background
    layers = traces(torch.full((2, 80, 2), 0.5), activations)
    found = [compare_trees(layers, 0, owners, OBJECT, top=8, seed=seed) for seed in range(5)]
    assert {each.even for each in found} == {(0.0, 0.0)}
    assert all(each.random.precision >= 5 / 8 for each in found)  # 72 of 80 are on a part
    assert len({each.random.precision for each in found}) > 1
    many = [compare_trees(layers, sample, owners, OBJECT, top=40).random for sample in (0, 1)]
    assert many[0] != many[1]


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


def test_the_map_is_tried_on_images_that_it_was_not_fitted_on():
    rng = torch.Generator().manual_seed(0)
    half = torch.randn(20, 3, generator=rng).double()
    poses = torch.cat([half, -half]).repeat_interleave(2, 0)  # pairs of equal poses, mean zero
    moved = poses.clone()
    moved[1::2] *= -1  # every second image turns the other way
    labels = torch.zeros(80, dtype=torch.int64)
    assert equivariance_error(poses, moved, labels) == pytest.approx(4.0)  # off by twice the pose
    moved[1::2] = 0.5 * poses[1::2]
    assert equivariance_error(poses, moved, labels) == pytest.approx(1.0)  # by as much as it is


def test_a_map_may_lose_dimensions_but_not_find_them():
    poses = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    flat = poses * torch.tensor([1.0, 1.0, 0.0])
    labels = torch.zeros(60, dtype=torch.int64)
    assert equivariance_error(poses, flat, labels) < 1e-10
    assert equivariance_error(flat, poses, labels) > 0.1


def test_a_mean_that_all_poses_share_explains_nothing():
    rng = torch.Generator().manual_seed(0)
    poses, moved = torch.randn(2, 2000, 3, generator=rng)
    error = equivariance_error(poses, moved + 100, torch.zeros(2000, dtype=torch.int64))
    assert_close(error, 1.0, atol=0.03, rtol=0)


def test_classes_weigh_by_what_their_poses_move():
    rng = torch.Generator().manual_seed(0)
    poses = torch.randn(400, 3, generator=rng).double()
    labels = torch.arange(400) % 2
    known = poses.clone()
    unknown = torch.randn(400, 3, generator=rng).double()
    moved = torch.where(labels[:, None] == 0, 10 * known, unknown)
    share = unknown[1::2].var(0).sum() / (unknown[1::2].var(0).sum() + 100 * known[::2].var(0).sum())
    assert equivariance_error(poses, moved, labels) == pytest.approx(float(share), rel=0.2)


def test_a_class_of_too_few_images_does_not_count():
    poses = torch.randn(31, 3, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([0] * 16 + [1] * 15)
    moved = torch.where(labels[:, None] == 0, poses, torch.rand(31, 3))
    assert equivariance_error(poses, moved, labels) < 1e-10
    with pytest.raises(ValueError, match="no class has 16 images"):
        equivariance_error(poses[16:], moved[16:], labels[16:])


def test_too_few_images_are_refused():
    with pytest.raises(ValueError, match="give more images"):
        equivariance_error(torch.rand(4, 3), torch.rand(4, 3), torch.zeros(4, dtype=torch.int64))
