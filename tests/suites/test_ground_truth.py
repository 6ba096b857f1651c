"""Every metric against the truth, of a network whose maps, trees and poses are made by hand."""

from contextlib import contextmanager
from math import cos, nan, pi, sin

import pytest
import torch
from torch.testing import assert_close

from torchcaps.core.types import CapsuleOutput, Capsules, LayerTrace, Routed
from torchcaps.data import Design, PartWhole, draw_partwhole
from torchcaps.data.synthetic.partwhole.grammar import build_tree
from torchcaps.layers import ReceptiveField
from torchcaps.models import create_model
from torchcaps.parse import CapsuleMap, Regions
from torchcaps.parse.contribution import Contributions
from torchcaps.parse.truth import Agreement, Trees, compare_trees
from torchcaps.suites import ground_truth
from torchcaps.suites.ground_truth import measure_truth
from torchcaps.train import Pipeline
from torchcaps.train.pipeline import Batch

SIDE, IMAGES, CLASSES = 4, 5, 3
PIXELS = Regions((CapsuleMap((SIDE, SIDE, 1), ReceptiveField((0.0, 0.0), 1.0, 1.0)),))  # one on each pixel


class AsTheyAre(Pipeline):
    """Images go to the network unchanged."""

    def __init__(self):
        pass

    def for_evaluation(self, images, targets=None):
        return Batch(images, images.float(), targets)


NETWORK, PIPELINE = create_model("dr_capsnet_tiny_test"), AsTheyAre()  # what it says is made below
RNG = torch.Generator().manual_seed(0)
ACTIVATIONS = torch.rand(IMAGES, SIDE**2, generator=RNG)
COUPLING = torch.rand(IMAGES, SIDE**2, CLASSES, generator=RNG).softmax(2)
LENGTHS = torch.rand(IMAGES, CLASSES, generator=RNG)
PARTS = torch.randn(IMAGES, SIDE**2, generator=RNG)
OWNERS = torch.randint(0, 5, (IMAGES, SIDE, SIDE), generator=RNG, dtype=torch.uint8)  # 1 and 2 are parts


def truth(images, labels, owners):
    """Images of two parts each, with what is true of them."""
    count = len(images)
    poses, loose = torch.zeros(count, 3, 2, 3), torch.zeros(count, 4, 2, 3)
    present = torch.zeros(count, 4, dtype=torch.bool)
    return PartWhole(images, labels, owners, poses, loose, present, build_tree((2,)))


@pytest.fixture
def drawn():
    """The grey of an image is its number."""
    images = torch.arange(IMAGES, dtype=torch.uint8).view(-1, 1, 1, 1).expand(-1, 1, SIDE, SIDE).contiguous()
    return truth(images, torch.arange(IMAGES) % CLASSES, OWNERS)


@pytest.fixture
def made(monkeypatch):
    """A network that knows each image by its grey, looked at two images at a time."""

    def outputs(network, inputs, *, routing=False):
        numbers = inputs[:, 0, 0, 0].long()
        routed = Routed(torch.zeros(len(numbers), CLASSES, 2), LENGTHS[numbers], COUPLING[numbers])
        children = Capsules(torch.zeros(len(numbers), SIDE**2, 2), ACTIVATIONS[numbers])
        return CapsuleOutput(LENGTHS[numbers], routed.poses, layers=(LayerTrace(children, routed),))

    def split(network, trace, chosen):
        numbers = [int((row == ACTIVATIONS).all(1).nonzero()) for row in trace.children.activations]
        assert chosen.tolist() == LENGTHS[numbers].argmax(1).tolist()
        return Contributions(PARTS[numbers], torch.zeros(len(numbers)))

    for name, stands_in in {
        "_BATCH": 2,
        "_MOST_TREES": 3,
        "_outputs": outputs,
        "find_regions": lambda network, inputs: PIXELS,
        "contribution_obstacle": lambda network: None,
        "contributions": split,
        "_even_accuracy": lambda *_: {},
        "_equivariance": lambda *_: {},
    }.items():
        monkeypatch.setattr(ground_truth, name, stands_in)


def shares_by_hand(values):
    """The mean share of each image's positive values on parts and on clutter, pixel by pixel."""
    on_object, on_clutter = [], []
    for image, owners in zip(values.clamp(min=0).tolist(), OWNERS.flatten(1).tolist(), strict=True):
        whole = sum(image)
        on_object.append(sum(v for v, owner in zip(image, owners, strict=True) if owner in (1, 2)) / whole)
        on_clutter.append(sum(v for v, owner in zip(image, owners, strict=True) if owner > 2) / whole)
    return sum(on_object) / IMAGES, sum(on_clutter) / IMAGES


def test_maps_are_those_of_the_predicted_class_on_their_own_images(made, drawn):
    found = measure_truth(NETWORK, drawn, PIPELINE)
    chosen = LENGTHS.argmax(1)
    assert len(set(chosen.tolist())) > 1
    to_chosen = torch.stack([COUPLING[number, :, each] for number, each in enumerate(chosen)])
    maps = {"saliency": ACTIVATIONS * to_chosen, "contribution": PARTS, "even": torch.ones(IMAGES, SIDE**2)}
    for name, values in maps.items():
        measured = found[f"{name}_on_object"], found[f"{name}_on_clutter"]
        assert measured == pytest.approx(shares_by_hand(values), rel=1e-5)


def test_purity_is_that_of_one_type_over_the_two_parts_of_all_images(made, drawn):
    found = measure_truth(NETWORK, drawn, PIPELINE)
    spent = [float(ACTIVATIONS[OWNERS.flatten(1) == part].sum()) for part in (1, 2)]
    assert found["part_purity"] == pytest.approx(max(spent) / sum(spent))
    assert found["part_purity_base"] == found["part_purity"]


def test_trees_are_means_over_the_first_images(made, drawn):
    found = measure_truth(NETWORK, drawn, PIPELINE)
    trees = []
    for number in range(3):
        routed = Routed(torch.zeros(IMAGES, CLASSES, 2), LENGTHS, COUPLING)
        layers = [LayerTrace(Capsules(torch.zeros(IMAGES, SIDE**2, 2), ACTIVATIONS), routed)]
        trees.append(compare_trees(layers, number, OWNERS[number].flatten().long(), drawn.tree))
    for kind, prefix in (("carved", ""), ("even", "even_")):
        for side in ("precision", "recall"):
            mean = sum(getattr(getattr(each, kind), side) for each in trees) / 3
            assert found[f"{prefix}tree_{side}"] == pytest.approx(mean)


@pytest.fixture
def agreements(monkeypatch):
    """The trees that are compared, and what is said of them."""
    asked, answers = [], []

    def compare(layers, sample, owners, tree, *, seed=0):
        asked.append((sample, seed, owners.tolist()))
        return answers[len(asked) - 1]

    monkeypatch.setattr(ground_truth, "compare_trees", compare)
    return asked, answers


def test_precision_and_recall_of_the_three_trees_have_their_own_names(made, drawn, agreements):
    asked, answers = agreements
    answers += [Trees(Agreement(0.1, 0.2), Agreement(0.3, 0.4), Agreement(0.5, 0.6))] * 3
    found = measure_truth(NETWORK, drawn, PIPELINE)
    names = [f"{kind}tree_{side}" for kind in ("", "even_", "random_") for side in ("precision", "recall")]
    assert [found[name] for name in names] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    assert [owners for _, _, owners in asked] == OWNERS[:3].flatten(1).tolist()


@pytest.mark.parametrize(("batch", "most"), [(3, 1), (3, 2), (2, 4), (5, 3)])
def test_as_many_trees_are_compared_as_are_wanted_whatever_the_batch(
    made, drawn, agreements, monkeypatch, batch, most
):
    monkeypatch.setattr(ground_truth, "_BATCH", batch)
    monkeypatch.setattr(ground_truth, "_MOST_TREES", most)
    asked, answers = agreements
    answers += [Trees(*[Agreement(0.5, 0.5)] * 3)] * IMAGES
    measure_truth(NETWORK, drawn, PIPELINE)
    assert [owners for _, _, owners in asked] == OWNERS[:most].flatten(1).tolist()


def test_no_two_images_get_the_same_random_tree(made, drawn, agreements):
    asked, answers = agreements
    answers += [Trees(*[Agreement(0.5, 0.5)] * 3)] * 3
    measure_truth(NETWORK, drawn, PIPELINE)
    assert len({(sample, seed) for sample, seed, _ in asked}) == len(asked) == 3


def test_a_tree_without_edges_has_no_precision_and_finds_nothing(made, drawn, agreements):
    _, answers = agreements
    empty, whole = Agreement(nan, 0.0), Agreement(0.5, 1.0)
    answers += [Trees(empty, whole, whole), Trees(whole, whole, whole), Trees(whole, whole, whole)]
    found = measure_truth(NETWORK, drawn, PIPELINE)
    assert found["tree_precision"] == 0.5
    assert found["tree_recall"] == pytest.approx(2 / 3)


def test_accuracy_with_even_couplings_is_measured_while_they_are_even(monkeypatch, drawn):
    is_even = []

    @contextmanager
    def evened(network):
        is_even.append(True)
        yield
        is_even.clear()

    def outputs(network, inputs, *, routing=False):
        numbers = inputs[:, 0, 0, 0].long()
        right = numbers % CLASSES
        said = torch.where(numbers < 3, right, (right + 1) % CLASSES) if is_even else right
        return CapsuleOutput(torch.eye(CLASSES)[said], torch.zeros(len(said), CLASSES, 2))

    for name, stands_in in {"evened": evened, "_outputs": outputs, "_BATCH": 2}.items():
        monkeypatch.setattr(ground_truth, name, stands_in)
    monkeypatch.setattr(ground_truth, "quantizable_routings", lambda network: [])
    assert ground_truth._even_accuracy(NETWORK, drawn, PIPELINE) == {"accuracy_with_even": 3 / 5}


def test_the_pose_of_the_true_class_is_taken_before_and_after_a_turn_of_fifteen_degrees(monkeypatch):
    """The pose is where a dot lies: counter-clockwise as one sees it, in pixels from the centre, y down."""
    side, places = 33, torch.tensor([[8.0, 0.0], [0.0, 8.0], [-6.0, 5.0]])
    at = torch.arange(side) - side // 2
    squares = (at.view(1, 1, -1) - places[:, 0].view(-1, 1, 1)) ** 2
    squares = squares + (at.view(1, -1, 1) - places[:, 1].view(-1, 1, 1)) ** 2
    images = (255 * torch.exp(-squares / 6)).round().byte().unsqueeze(1)
    labels = torch.tensor([2, 0, 1])
    asked = []

    def outputs(network, inputs, *, routing=False):
        mass = inputs[:, 0] / inputs[:, 0].sum((1, 2), keepdim=True)
        centre = torch.stack([(mass.sum(1) * at).sum(1), (mass.sum(2) * at).sum(1)], dim=1)
        numbers = [int((places - point).norm(dim=1).argmin()) for point in centre]
        poses = torch.full((len(inputs), CLASSES, 2), 99.0)
        poses[torch.arange(len(inputs)), labels[numbers]] = centre
        lengths = torch.zeros(len(inputs), CLASSES)  # the class that is predicted is another
        return CapsuleOutput(lengths, poses)

    def error(before, after, of):
        asked.append((before, after, of.tolist()))
        return 0.25

    for name, stands_in in {"_outputs": outputs, "equivariance_error": error, "_BATCH": 2}.items():
        monkeypatch.setattr(ground_truth, name, stands_in)
    drawn = truth(images, labels, torch.zeros(3, side, side, dtype=torch.uint8))
    assert ground_truth._equivariance(NETWORK, drawn, PIPELINE) == {"equivariance_error": 0.25}
    ((before, after, of),) = asked
    turn = pi * 15 / 180
    turned = places @ torch.tensor([[cos(turn), -sin(turn)], [sin(turn), cos(turn)]])  # rows, y down
    assert of == labels.tolist()
    assert_close(before, places, atol=0.05, rtol=0)
    assert_close(after, turned, atol=0.05, rtol=0)


def test_objects_and_clutter_of_drawn_images_are_those_of_the_map():
    """A map of ones on the parts alone has all of its share on the object."""
    drawn = draw_partwhole(6, Design(clutter=1.0))
    maps = (drawn.owners >= 1) & (drawn.owners <= 4)
    shares = ground_truth.evidence_shares(maps.float(), drawn.is_object, drawn.is_clutter)
    assert shares == pytest.approx((1.0, 0.0, 0.0))


@pytest.mark.parametrize(
    ("name", "has_maps"), [("efficient_capsnet_tiny_test", True), ("conv_baseline_tiny_test", False)]
)
def test_networks_have_the_metrics_that_mean_something_for_them(name, has_maps):
    """Capsules that read a whole map have no place for their votes; a logit is no pose."""
    network = create_model(name, image_size=20, num_classes=2)
    images = torch.randint(
        256, (40, 1, 20, 20), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)
    )
    owners = (images[:, 0] % 5).byte()
    found = measure_truth(network, truth(images, torch.zeros(40, dtype=torch.int64), owners), PIPELINE)
    assert ("saliency_on_object" in found) == ("tree_recall" in found) == has_maps
    assert ("equivariance_error" in found) == has_maps
    assert "contribution_on_object" not in found
