"""PartWhole: what is drawn is what the truth says, and parts alone do not tell a class."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from torchcaps.core import UserError
from torchcaps.data import (
    Design,
    draw_named,
    draw_partwhole,
    find_info,
    load_dataset,
    load_partwhole,
    partwhole_settings,
    write_partwhole,
)
from torchcaps.data.synthetic.partwhole.grammar import build_tree, orders, places, thing_radius

COUNT, CLASSES = 2048, 4
PLAIN = Design(jitter=0.0, clutter=0.0, texture=0.0)


@pytest.fixture(scope="module")
def drawn():
    return draw_partwhole(COUNT, Design(classes=CLASSES))


@pytest.fixture(scope="module")
def large():
    return draw_partwhole(24, Design(size=128, clutter=1.0))


def probe_accuracy(features, labels):
    """Test accuracy of a linear least-squares classifier, trained on the first half."""
    half, classes = len(labels) // 2, int(labels.max()) + 1
    scaled = (features - features.mean(0)) / features.std(0).clamp(min=1e-6)
    inputs = torch.cat([scaled, torch.ones(len(scaled), 1)], dim=1).double()
    weights = torch.linalg.lstsq(
        inputs[:half], F.one_hot(labels[:half], classes).double(), driver="gelsd"
    ).solution
    return float(((inputs[half:] @ weights).argmax(1) == labels[half:]).double().mean())


def chance_limit(classes, tests, deviations=4.0):
    share = 1 / classes
    return share + deviations * (share * (1 - share) / tests) ** 0.5


def test_a_linear_probe_on_part_counts_is_at_chance(drawn):
    numbers = torch.arange(int(drawn.owners.max()) + 1)
    counts = (drawn.owners.flatten(1).unsqueeze(-1) == numbers).sum(1).float()
    assert probe_accuracy(counts, drawn.labels) < chance_limit(CLASSES, COUNT // 2)


def test_a_linear_probe_on_a_histogram_of_grey_values_is_at_chance(drawn):
    bins = torch.div(drawn.images.flatten(1), 16, rounding_mode="floor").long()
    histogram = F.one_hot(bins, 16).sum(1).float()
    assert probe_accuracy(histogram, drawn.labels) < chance_limit(CLASSES, COUNT // 2)


def test_a_linear_probe_on_the_relation_of_parts_finds_the_class(drawn):
    whole = drawn.poses[:, -1]
    parts = drawn.poses[:, : drawn.tree.num_parts, :, 2] - whole[:, None, :, 2]
    within = torch.linalg.solve(whole[:, :, :2], parts.transpose(1, 2))  # places in the object's own frame
    assert probe_accuracy(within.flatten(1), drawn.labels) > 0.95


def learned_accuracy(features, labels):
    """Test accuracy of a small network, trained on the first half."""
    half, scaled = len(labels) // 2, (features - features.mean(0)) / features.std(0)
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(scaled.shape[1], 64), torch.nn.ReLU(), torch.nn.Linear(64, CLASSES)
    )
    optimizer = torch.optim.Adam(network.parameters(), 0.01)
    for _ in range(60):
        optimizer.zero_grad()
        F.cross_entropy(network(scaled[:half]), labels[:half]).backward()
        optimizer.step()
    return float((network(scaled[half:]).argmax(1) == labels[half:]).double().mean())


def test_a_network_needs_the_places_of_parts(drawn):
    parts = drawn.poses[:, : drawn.tree.num_parts]
    bag = torch.cat([parts[..., :2].flatten(1), drawn.part_masks.sum((2, 3)).float()], dim=1)
    assert learned_accuracy(bag, drawn.labels) < chance_limit(CLASSES, COUNT // 2)
    places_too = torch.cat([bag, (parts[..., 2] - drawn.poses[:, -1:, :, 2]).flatten(1)], dim=1)
    assert learned_accuracy(places_too, drawn.labels) > 0.8


def test_images_depend_on_the_seed_alone_and_the_first_ones_stay():
    some, more, other = draw_partwhole(5), draw_partwhole(1030), draw_partwhole(5, seed=1)
    assert torch.equal(some.images, more.images[:5])
    assert torch.equal(some.poses, more.poses[:5])
    assert not torch.equal(some.images, other.images)


def test_every_part_is_seen_whole_where_its_pose_says(large):
    areas = large.part_masks.sum((2, 3)).float()
    poses = large.poses[:, : large.tree.num_parts]
    determinants = torch.linalg.det(poses[..., :2])
    exact = torch.tensor([1.299, 2.0, np.pi * 0.64, 4 * 0.95 * 0.3])  # of the shapes in the unit disc
    torch.testing.assert_close(areas / determinants, exact.expand_as(areas), rtol=0.06, atol=0)


def test_the_pose_of_a_disc_is_its_centre(large):
    mask = large.part_masks[:, large.tree.names.index("disc")].float()
    at = torch.arange(128.0) + 0.5 - 64
    centre = (
        torch.stack([(mask.sum(1) * at).sum(1), (mask.sum(2) * at).sum(1)], dim=1) / mask.sum((1, 2))[:, None]
    )
    pose = large.poses[:, large.tree.names.index("disc"), :, 2]
    torch.testing.assert_close(centre, pose, rtol=0, atol=0.25)


def test_without_jitter_children_stand_at_the_places_of_their_class():
    found = draw_partwhole(8, PLAIN)
    whole, expected = found.poses[:, -1], places(4)
    for label, frame, poses in zip(found.labels, whole, found.poses, strict=True):
        order = orders(4, 8, 0)[label]
        standing = frame[:, :2] @ expected[list(order)].T + frame[:, 2:]
        torch.testing.assert_close(poses[:4, :, 2].T, standing)


@pytest.mark.parametrize("children", [2, 3, 4, 8])
def test_places_lie_apart_within_the_unit_disc(children):
    at, radius = places(children), thing_radius(children)
    apart = torch.cdist(at, at) + 10 * torch.eye(children)
    assert apart.min() > 2 * radius
    assert torch.linalg.vector_norm(at, dim=1).max() + radius < 1


def test_a_scene_of_objects_has_a_tree_of_three_levels():
    tree = build_tree((3, 2))
    assert tree.levels == (0,) * 6 + (1,) * 2 + (2,)
    assert tree.parents == (6, 6, 6, 7, 7, 7, 8, 8, -1)
    assert tree.names[4] == "object 2/square"
    assert tree.ancestors(4) == [7, 8]
    found = draw_partwhole(2, Design(branches=(3, 2), classes=2, size=48))
    assert found.poses.shape[1] == len(tree.names)


def test_objects_of_a_scene_differ_and_do_not_depend_on_the_class():
    found = draw_partwhole(
        2, Design(branches=(3, 2), classes=2, jitter=0.0, rotation=0.0, shear=0.0, scale=0.0)
    )

    def layout(image, thing):
        frame = found.poses[image, 6 + thing]
        parts = found.poses[image, 3 * thing : 3 * thing + 3, :, 2]
        return torch.linalg.solve(frame[:, :2], (parts - frame[:, 2]).T)

    for thing in (0, 1):
        torch.testing.assert_close(layout(0, thing), layout(1, thing), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(layout(0, 0), layout(0, 1), atol=1e-2)


def test_clutter_and_texture_are_off_at_zero_and_grow():
    plain, full = (draw_partwhole(64, Design(clutter=strength, texture=strength)) for strength in (0.0, 1.0))
    assert not plain.is_clutter.any()
    assert not plain.present.any()
    assert plain.images[:, 0][plain.owners == 0].float().mean() < 3  # outlines alone
    assert full.present.all()
    assert full.images[:, 0][full.owners == 0].float().std() > 10


def test_object_and_clutter_are_told_apart_by_their_numbers():
    drawn = draw_partwhole(1, Design(branches=(2,), classes=2))
    owners = torch.tensor([[[0, 1, 2, 3, 4]]], dtype=torch.uint8)  # background, two parts, two distractors
    drawn = replace(drawn, owners=owners, images=owners.unsqueeze(1))
    assert drawn.is_object.tolist() == [[[False, True, True, False, False]]]
    assert drawn.is_clutter.tolist() == [[[False, False, False, True, True]]]
    assert drawn.part_masks.int().tolist() == [[[[0, 1, 0, 0, 0]], [[0, 0, 1, 0, 0]]]]


def test_each_distractor_is_there_with_the_probability_of_clutter_whatever_its_size():
    drawn = draw_partwhole(512, Design(clutter=0.3, size=16))
    share = float(drawn.present.double().mean())
    assert abs(share - 0.3) < 4 * (0.3 * 0.7 / drawn.present.numel()) ** 0.5
    sizes = torch.linalg.det(drawn.loose_poses[..., :2])
    assert_close(sizes[drawn.present].mean(), sizes[~drawn.present].mean(), rtol=0.03, atol=0)


def test_what_is_written_is_read_back(tmp_path):
    design = Design(size=16)
    drawn = draw_partwhole(6, design, seed=3)
    write_partwhole(tmp_path, drawn, design, seed=3, pictures=True)
    read = load_partwhole(tmp_path)
    for name in ("images", "labels", "owners", "poses", "loose_poses", "present"):
        assert torch.equal(getattr(read, name), getattr(drawn, name))
    assert read.tree == drawn.tree
    assert json.loads((tmp_path / "design.json").read_text())["seed"] == 3
    assert len(list((tmp_path / "images").glob("*.png"))) == 6


def test_a_split_is_drawn_as_recipes_see_it():
    name = "partwhole:train=30,test=20,seed=3"
    for split, count in (("train", 30), ("test", 20)):
        drawn, design, seed = draw_named(name, split=split)
        assert torch.equal(drawn.images, load_dataset(name, split).images)
        assert torch.equal(drawn.images, draw_partwhole(count, design, seed=seed).images)
    assert torch.equal(draw_named(name, count=5).drawn.images, draw_partwhole(5, seed=3).images)
    assert torch.equal(draw_named(name, count=5, seed=4).drawn.images, draw_partwhole(5, seed=4).images)


@pytest.mark.parametrize(
    ("options", "words"), [({"split": "tests"}, "train or test"), ({"seed": 1}, "leave")]
)
def test_a_split_that_is_none_and_one_with_a_seed_are_refused(options, words):
    with pytest.raises(UserError, match=words):
        draw_named("partwhole", **{"split": "test", **options})


def test_pictures_of_another_draw_are_not_left_among_new_ones(tmp_path):
    write_partwhole(tmp_path, draw_partwhole(3, PLAIN), PLAIN, pictures=True)
    write_partwhole(tmp_path, draw_partwhole(3, PLAIN, seed=1), PLAIN, pictures=True)
    for count, pictures in ((2, True), (3, False)):
        with pytest.raises(UserError, match="another draw"):
            write_partwhole(tmp_path, draw_partwhole(count, PLAIN), PLAIN, pictures=pictures)


def test_a_damaged_folder_is_named(tmp_path):
    with pytest.raises(UserError, match=r"no design.json"):
        load_partwhole(tmp_path)
    drawn = draw_partwhole(2, PLAIN)
    write_partwhole(tmp_path, drawn, PLAIN)
    (tmp_path / "truth.npz").write_bytes(b"nothing")
    with pytest.raises(UserError, match=r"truth\.npz is no truth of a PartWhole, or damaged"):
        load_partwhole(tmp_path)


def _written(folder):
    write_partwhole(folder, draw_partwhole(2, PLAIN), PLAIN)
    return folder


@pytest.mark.parametrize("images", [np.zeros((2, 32, 32)), np.array("x"), np.zeros((2, 5, 5), np.uint8)])
def test_images_of_another_form_are_refused(tmp_path, images):
    np.save(_written(tmp_path) / "images.npy", images)
    with pytest.raises(UserError, match=r"images\.npy is no array|do not belong together"):
        load_partwhole(tmp_path)


@pytest.mark.parametrize("design", [None, {}, {"branches": None}, {"branches": [[1]]}, {"a": 1}])
def test_a_design_that_makes_no_sense_is_refused(tmp_path, design):
    path = _written(tmp_path) / "design.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "design": design, "tree": {}}))
    with pytest.raises(UserError, match=r"design|do not belong together"):
        load_partwhole(tmp_path)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"classes": 25}, "at most 24"),
        ({"branches": (9,)}, "at most 8"),
        ({"branches": (2, 3)}, "allow 2 different children"),
        ({"clutter": 1.5}, r"must lie in \[0, 1\]"),
        ({"size": 8}, "16..512"),
    ],
)
def test_an_impossible_design_is_refused(settings, words):
    with pytest.raises(UserError, match=words):
        Design(**settings)


def test_a_name_holds_settings():
    name = "partwhole:branches=3x3,classes=6,clutter=0.5,train=30,test=20"
    assert partwhole_settings(name).design == Design(branches=(3, 3), classes=6, clutter=0.5)
    assert find_info(name).num_train == 30
    assert partwhole_settings("partwhole:branches=5").design == Design(branches=(5,))
    train, test = (load_dataset(name, split, size=48) for split in ("train", "test"))
    assert train.images.shape == (30, 1, 48, 48)
    assert not torch.equal(train.images[:20], test.images)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("partwhole:cluter=0.5", "clutter"),
        ("partwhole:clutter", "key=value"),
        ("partwhole:classes=many", "expected int"),
        ("mnist:classes=3", "unknown dataset"),
    ],
)
def test_a_wrong_name_is_refused(name, words):
    with pytest.raises(UserError, match=words):
        find_info(name)
