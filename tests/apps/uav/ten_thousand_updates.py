"""Ten thousand updates over a map in a process of their own; prints by how many KiB its memory grew.

`test_localize.py` runs this file: the run-time checks of shapes in tests would take most of the time.
"""

import resource
import sys
from pathlib import Path

import numpy as np
import torch

from torchcaps.apps.uav import Localizer, open_map
from torchcaps.apps.uav.filter import Odometry, linear_likelihood
from torchcaps.apps.uav.filter.compiled import CompiledBackend


class OneDescriptor:
    """A describer that costs no time: what an update keeps is not up to it."""

    def __init__(self, compiled):
        self.side, self.size, self.name = 4, compiled.descriptors.size, compiled.info.model
        self.device = torch.device("cpu")
        self.answer = torch.nn.functional.normalize(torch.ones(1, self.size))

    def __call__(self, crops):
        return self.answer


def main():
    compiled = open_map(Path(sys.argv[1]))
    backend = CompiledBackend(threads=1)
    localizer = Localizer(compiled, OneDescriptor(compiled), linear_likelihood(), backend=backend)
    image = np.random.default_rng(0).integers(0, 256, (4, 4, 3)).astype(np.uint8)
    for number in range(10_200):
        if number == 200:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        localizer.update(image, Odometry(20.0, 0.0, 0.0), 0.3)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


main()
