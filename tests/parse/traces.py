"""Forward passes made up from random numbers."""

from itertools import pairwise

import torch

from torchcaps.core import Capsules
from torchcaps.core.types import LayerTrace, Routed


def random_layers(seed, sizes, batch=2, sharpness=4.0):
    generator = torch.Generator().manual_seed(seed)
    layers = []
    children = Capsules(torch.zeros(batch, sizes[0], 2), torch.rand(batch, sizes[0], generator=generator))
    for before, after in pairwise(sizes):
        coupling = (sharpness * torch.randn(batch, before, after, generator=generator)).softmax(-1)
        routed = Routed(torch.zeros(batch, after, 2), torch.rand(batch, after, generator=generator), coupling)
        layers.append(LayerTrace(children, routed))
        children = routed.capsules
    return tuple(layers)
