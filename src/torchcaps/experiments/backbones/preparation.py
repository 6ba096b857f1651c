"""Epochs of trunks and capsules, and the effort of the search, for each dataset and budget."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchcaps.train import StructuredPruning

from ..plan import Changes
from ..records import Budget

_SMALL_DATA: Changes = {
    "data.preprocess.resize": 32,
    "data.limit": 80,
    "data.validation": 0.2,
    "batch_size": 16,
}


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """How a trunk is trained, pruned and tuned, and the capsules on it are trained."""

    trunk: Changes = field(default_factory=dict)
    tuning: Changes
    capsules: Changes = field(default_factory=dict)
    search: StructuredPruning


_SMOKE = Preparation(
    trunk={**_SMALL_DATA, "epochs": 1},
    tuning={"epochs": 1},
    capsules={**_SMALL_DATA, "epochs": 1, "patience": 0},
    search=StructuredPruning(candidates=2, batches=2, batch_size=16),
)
_FULL = Preparation(
    tuning={"epochs": 20, "optim.learning_rate": 1e-4},
    search=StructuredPruning(candidates=100, batches=100),
)
PREPARATIONS: dict[str, dict[Budget, Preparation]] = {
    "cifar10": {
        "smoke": _SMOKE,
        "quick": Preparation(
            trunk={"batch_size": 256, "epochs": 30, "optim.decay": 0.88},
            tuning={"epochs": 3, "optim.learning_rate": 3e-4, "optim.decay": 0.5},
            capsules={"batch_size": 256, "epochs": 5, "patience": 0, "optim.decay": 0.7},
            search=StructuredPruning(candidates=12, batches=30),
        ),
        "full": _FULL,
    },
    "imagenette": {  # a fifth of the images, so more and shorter epochs
        "smoke": _SMOKE,
        "quick": Preparation(
            trunk={"epochs": 80, "optim.decay": 0.95},
            tuning={"epochs": 8, "optim.learning_rate": 3e-4, "optim.decay": 0.75},
            capsules={"epochs": 12, "patience": 0, "optim.decay": 0.82},
            search=StructuredPruning(candidates=12, batches=30),
        ),
        "full": _FULL,
    },
}
