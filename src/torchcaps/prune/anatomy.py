"""Where the parts of a network are that can be left out when they are zero."""

from __future__ import annotations

from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from torchcaps.core.errors import UserError
from torchcaps.layers import FcCaps, SelectedFcCaps
from torchcaps.models import DeepCaps, DRCapsNet, EfficientCapsNet, GammaCapsNet
from torchcaps.routing import DynamicRouting, SelfAttentionRouting

from .dead_channels import ConvStep


class Anatomy(NamedTuple):
    """A chain of convolutions, the convolution that reads the last of them, and the capsules above."""

    steps: list[ConvStep]
    reader: ConvStep
    is_padded: bool  # whether the reader sees zeros around the map
    parents_name: str
    parents: Any  # FcCaps
    types: int  # kinds of children that go with their own filters of the reader; 1 where they cannot
    selects: bool  # whether the config can say that only some children vote

    @property
    def drops_children(self) -> bool:
        """Whether a child that votes zero can go.

        In other routings such a vote still counts, and of children that share matrices none votes zero alone.
        """
        own_matrices = len(self.parents.weight) == self.parents.in_caps
        ignores_zeros = type(self.parents.routing) in (DynamicRouting, SelfAttentionRouting)
        return self.selects and own_matrices and ignores_zeros

    def silent_coupling(self) -> Float[Tensor, "in_caps out_caps"]:
        """What the couplings of each child are when it votes zero."""
        parents: FcCaps = self.parents
        votes = parents.weight.new_zeros(1, parents.in_caps, *parents.weight.shape[2:])
        routed = parents.routing(votes, votes.new_zeros(votes.shape[:2]))
        assert routed.coupling is not None
        if not isinstance(parents, SelectedFcCaps):
            return routed.coupling[0]
        return parents.silent_coupling.index_copy(0, parents.voters, routed.coupling[0])


def anatomy_of(network: nn.Module) -> Anatomy:
    """What of a network can go.

    - DR-CapsNet and Efficient-CapsNet: capsules, whole types with their filters, channels below them.
    - Gamma-CapsNet: channels below the primary capsules. In scaled-distance routing, which it is made for, a
      vote of zero counts.
    - DeepCaps: capsules of the last two cells that no class hears, and stem channels that nobody reads.
      Inside the cells maps are padded and added, where a constant channel is not constant.
    """
    match network:
        case DRCapsNet() | GammaCapsNet():
            steps = [ConvStep("stem", network.stem, nn.ReLU())]
            name = "hidden" if isinstance(network, GammaCapsNet) else "classes"
            return _above_primary(network, steps, name)
        case EfficientCapsNet():
            blocks: Any = network.stem
            steps = [
                ConvStep(f"stem.{number}.0", block[0], block[1:], norm=f"stem.{number}.2")
                for number, block in enumerate(blocks)
            ]
            return _above_primary(network, steps, "classes")
        case DeepCaps():
            rectifier = nn.ReLU() if network.config.stem_relu else nn.Identity()
            steps = [ConvStep("stem", network.stem, nn.Sequential(rectifier, network.norm), norm="norm")]
            first: Any = network.cells[0]
            reader = ConvStep("cells.0.halve.conv", first.halve.conv, nn.Identity())
            return Anatomy(steps, reader, True, "classes", network.classes, 1, selects=True)
    raise UserError(
        "DR-CapsNet, Efficient-CapsNet, gamma-CapsNet and DeepCaps can be shrunk, "
        f"not {type(network).__name__}"
    )


def _above_primary(network: Any, steps: list[ConvStep], parents: str) -> Anatomy:
    primary = network.primary
    reader = ConvStep("primary.conv", primary.conv, nn.Identity())
    return Anatomy(
        steps,
        reader,
        primary.padding == "same",
        parents,
        getattr(network, parents),
        primary.types,
        selects=hasattr(network.config, "voters"),
    )
