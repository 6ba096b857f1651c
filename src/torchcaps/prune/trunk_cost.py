"""Multiply-adds of a trunk as arithmetic on its widths, for many widths at once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Num
from torch import Tensor, nn

from torchcaps.core import ImageSize, UserError, sides
from torchcaps.layers.backbone import Trunk


def prunable_trunk(trunk: nn.Module) -> Trunk:
    """The trunk itself if it says which of its channels belong together; others are an error."""
    if not isinstance(trunk, Trunk):
        raise UserError(
            f"a {type(trunk).__name__} does not say which of its channels belong together; "
            "trunks by name do (torchcaps.layers.backbone.list_trunks)"
        )
    return trunk


class TrunkCost:
    """What a trunk costs for one image of a given size, by the widths of its groups.

    The head is left out: published FLOPs of pruned trunks, and the shares asked for here, are those of the
    trunk. Biases, rectifiers and normalisations are left out too, as in `count_flops`.
    """

    def __init__(self, trunk: nn.Module, image_size: ImageSize) -> None:
        trunk = prunable_trunk(trunk)
        self.convolutions = trunk.convolutions()
        self.full = torch.tensor(trunk.widths)
        height, width = sides(image_size)
        read, written, weights = [], [], []
        image, one = len(trunk.widths), len(trunk.widths) + 1  # columns behind the groups
        for convolution in self.convolutions:
            shrinkage = convolution.shrinkage
            positions = -(-height // shrinkage) * -(-width // shrinkage)  # every stride rounds up
            source = image if convolution.source is None else convolution.source
            read.append(one if convolution.is_depthwise else source)
            written.append(convolution.group)
            weights.append(positions * convolution.kernel_size**2)
        self._read, self._written = torch.tensor(read), torch.tensor(written)
        self._weights = torch.tensor(weights)
        channels = trunk.get_submodule(self.convolutions[0].name).weight.shape[1]  # type: ignore[index]
        self._behind = torch.tensor([int(channels), 1])
        self.macs_of_full = self.macs_of(self.full.tolist())

    def macs_of(self, widths: Sequence[int]) -> int:
        """Multiply-adds of one trunk."""
        return int(self.macs(torch.tensor(widths).unsqueeze(0)))

    def macs(self, widths: Num[Tensor, "draws groups"]) -> Num[Tensor, " draws"]:
        """Multiply-adds of each row of widths, which may be fractions."""
        columns = torch.cat([widths, self._behind.expand(len(widths), 2)], dim=1)
        return (self._weights * columns[:, self._read] * columns[:, self._written]).sum(1)

    def share(self, widths: Num[Tensor, "draws groups"]) -> Float[Tensor, " draws"]:
        """Multiply-adds of each row as a share of those of the unpruned trunk."""
        return self.macs(widths).double() / self.macs_of_full
