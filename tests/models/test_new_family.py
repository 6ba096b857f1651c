"""A family that prune and parse have never seen: what it declares is all they need."""

from dataclasses import dataclass, replace
from inspect import getattr_static
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import torchcaps
from torchcaps.core import ImageSize, LayerTrace
from torchcaps.inspection import count_parameters
from torchcaps.layers import ConvStage, FcCaps, PrimaryCaps, build_fc_caps, flatten_grid, map_sizes
from torchcaps.layers.backbone import create_trunk
from torchcaps.models import (
    MODELS,
    CapsuleClassifier,
    CapsuleGrid,
    ConvStep,
    OnTrunk,
    PlainClassifier,
    Removable,
    Shrinkable,
    ShrinksAndGrows,
    create_model,
    register_variants,
)
from torchcaps.parse import capsule_maps, fully_connected, parse_tree, quantized
from torchcaps.prune import remove_channels, shrink, strongest_channels
from torchcaps.train.pruning import StructuredPruning
from torchcaps.train.pruning.candidates import plan_candidates

SOURCE = Path(torchcaps.__file__).parent


@dataclass(frozen=True, kw_only=True)
class ToyConfig:
    in_channels: int = 1
    image_size: ImageSize = (13, 18)
    num_classes: int = 3
    eyes: int = 6
    kinds: int = 4
    heard: int = 0

    @property
    def stages(self):
        return [ConvStage("eye", 3), ConvStage("look", 3, 2)]


class Toy(CapsuleClassifier):
    """Two convolutions and class capsules, under names that no other family uses."""

    config: ToyConfig
    decoder = None

    def __init__(self, config: ToyConfig) -> None:
        super().__init__(config)
        height, width = map_sizes(config.image_size, config.stages)[-1]
        self.eye = nn.Conv2d(config.in_channels, config.eyes, 3)
        self.look = PrimaryCaps(config.eyes, config.kinds, 2, kernel_size=3, stride=2)
        children = config.kinds * height * width
        self.verdict: FcCaps = build_fc_caps(
            children, config.num_classes, 2, 4, routing="dynamic", voters=config.heard
        )

    def encode(self, images, *, return_coupling=True):
        children = flatten_grid(self.look(self.eye(images).relu()))
        return (LayerTrace(children, self.verdict(children, return_coupling=return_coupling)),)

    def capsule_grids(self):
        return (CapsuleGrid(self.config.stages, self.config.kinds),)

    def removable(self):
        return Removable(
            steps=[ConvStep("eye", self.eye, nn.ReLU())],
            reader=ConvStep("look.conv", self.look.conv, nn.Identity()),
            is_padded=False,
            parents_name="verdict",
            parents=self.verdict,
            types=self.config.kinds,
            selects=True,
        )

    def resized(self, kept):
        return replace(self.config, eyes=kept.widths[0], kinds=kept.types, heard=kept.voters)


@dataclass(frozen=True, kw_only=True)
class ToyOnTrunkConfig:
    in_channels: int = 1
    image_size: ImageSize = (16, 24)
    num_classes: int = 3
    trunk_widths: tuple[int, ...] | None = None


class ToyOnTrunk(PlainClassifier):
    """The largest values of a trunk's map, and a linear layer."""

    config: ToyOnTrunkConfig

    def __init__(self, config: ToyOnTrunkConfig) -> None:
        super().__init__(config)
        self.trunk = create_trunk("resnet_tiny", in_channels=config.in_channels, widths=config.trunk_widths)
        self.reader = nn.Linear(self.trunk.out_channels, config.num_classes)

    least_channels = 5

    def head_cuts(self, channels):
        return {"reader.weight": (None, channels)}

    def logits(self, images):
        return self.reader(self.trunk(images).amax((2, 3)))


@pytest.fixture
def pruned():
    """A toy in which two channels, one kind of capsule and some more capsules are zero."""
    network = Toy(ToyConfig()).double().eval()
    with torch.no_grad():
        network.eye.weight[[1, 4]] = 0
        network.verdict.weight[2::4] = 0  # the third kind, wherever it stands
        network.verdict.weight[:7] = 0
    return network


def test_a_new_family_is_shrunk_by_what_it_declares(pruned):
    smaller = shrink(pruned)
    assert isinstance(pruned, Shrinkable)
    assert (smaller.config.eyes, smaller.config.kinds) == (4, 3)
    assert count_parameters(smaller) < count_parameters(pruned)
    images = torch.rand(3, *pruned.image_shape, dtype=torch.float64)
    assert_close(smaller(images).poses, pruned(images).poses)


def test_a_new_family_is_parsed_by_what_it_declares():
    network = Toy(ToyConfig()).eval()
    with torch.no_grad(), quantized(network, 11):
        output = network(torch.rand(1, *network.image_shape), return_routing=True)
    (where,) = capsule_maps(network)
    assert where.grid == (5, 7, 4)
    tree = parse_tree(fully_connected(output.layers), grid=where.grid)
    assert tree.layer_sizes == (5 * 7 * 4, 3)
    assert capsule_maps(ToyOnTrunk(ToyOnTrunkConfig())) == ()


def test_channels_of_a_new_family_on_a_trunk_are_removed():
    network = ToyOnTrunk(ToyOnTrunkConfig()).eval()
    assert isinstance(network, OnTrunk)
    cost, drawn = plan_candidates(network, StructuredPruning(method="l1", flops=0.5))
    (widths,) = drawn.widths
    assert widths[-1] >= network.least_channels
    smaller = remove_channels(network, strongest_channels(network.trunk, widths))
    assert smaller.config.trunk_widths == widths
    assert smaller.reader.weight.shape == (3, widths[-1])
    assert smaller(torch.rand(2, *network.image_shape)).activations.shape == (2, 3)
    assert cost.macs_of(widths) < cost.macs_of_full


@pytest.mark.parametrize("package", ["prune", "parse", "train/pruning"])
def test_no_family_is_named_where_networks_are_pruned_and_parsed(package):
    families = {MODELS[name].build.__name__ for name in MODELS.names()}
    for path in (SOURCE / package).rglob("*.py"):
        assert not [family for family in families if family in path.read_text()], path


@pytest.mark.parametrize(
    ("name", "protocol"),
    [
        ("dr_capsnet_tiny_test", Shrinkable),
        ("trunk_classifier_tiny_test", OnTrunk),
        ("segcaps_tiny_test", ShrinksAndGrows),
    ],
)
def test_what_a_family_declares_is_seen_without_running_its_lookup(name, protocol):
    """From Python 3.12 on `isinstance` finds attributes statically, which misses submodules."""
    model = create_model(name)
    members = {each for each in dir(protocol) if not each.startswith("_")} | set(protocol.__annotations__)
    assert not [member for member in members if getattr_static(model, member, None) is None]


def test_a_family_that_is_defined_again_replaces_itself_and_no_other(monkeypatch):
    monkeypatch.setattr(MODELS, "_entries", dict(MODELS._entries))
    told = {"family": "toy", "paper": "sabour2017dynamic"}
    for eyes in (5, 7):
        register_variants(Toy, **told, variants={"toy": ToyConfig(eyes=eyes)})
    assert create_model("toy").config.eyes == 7
    with pytest.raises(ValueError, match="model 'toy' is already registered"):
        register_variants(torch.nn.Identity, **told, variants={"toy": ToyConfig()})
