"""How long trunks and capsules learn and how hard is searched, for each dataset and budget."""

from __future__ import annotations

from dataclasses import dataclass

from torchcaps.train import StructuredPruning

SMALL_DATA = ("data.preprocess.resize=32", "data.limit=80", "data.validation=0.2", "batch_size=16")


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """What is done to a trunk before capsules stand on it, and to them: changes of recipes, and a search."""

    trunk: tuple[str, ...] = ()
    tuning: tuple[str, ...] = ()
    capsules: tuple[str, ...] = ()
    search: StructuredPruning


_SMOKE = Preparation(
    trunk=(*SMALL_DATA, "epochs=1"),
    tuning=("epochs=1",),
    capsules=(*SMALL_DATA, "epochs=1", "patience=0"),
    search=StructuredPruning(candidates=2, batches=2, batch_size=16),
)
_FULL = Preparation(
    tuning=("epochs=20", "optim.learning_rate=1e-4"),
    search=StructuredPruning(candidates=100, batches=100),
)
PREPARATIONS = {
    "cifar10": {
        "smoke": _SMOKE,
        "quick": Preparation(
            trunk=("batch_size=256", "epochs=30", "optim.decay=0.88"),
            tuning=("epochs=3", "optim.learning_rate=3e-4", "optim.decay=0.5"),
            capsules=("batch_size=256", "epochs=5", "patience=0", "optim.decay=0.7"),
            search=StructuredPruning(candidates=12, batches=30),
        ),
        "full": _FULL,
    },
    "imagenette": {  # a fifth of the images, so more and shorter epochs
        "smoke": _SMOKE,
        "quick": Preparation(
            trunk=("epochs=80", "optim.decay=0.95"),
            tuning=("epochs=8", "optim.learning_rate=3e-4", "optim.decay=0.75"),
            capsules=("epochs=12", "patience=0", "optim.decay=0.82"),
            search=StructuredPruning(candidates=12, batches=30),
        ),
        "full": _FULL,
    },
}
