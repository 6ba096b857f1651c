"""Suite `train`: whole training steps and epochs, through the session that `torchcaps train` uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, count, product
from pathlib import Path

import torch

from torchcaps.data import DATASETS, LabelledImages, synthetic_images
from torchcaps.train import Evaluation, Machine, Recipe, evaluate, launch, load_recipe
from torchcaps.train.loop import Session

from .backend import kernel_free, use_kernels
from .bench import Bench, Measurement
from .roofline import Precision, model_cost
from .timing import Effort, Work

_STEPS = 8  # batches that a step is timed on, in turn
_WARM_UP = 5  # steps after which the graph is captured and was replayed
_MOST_ON_CPU = 5_000  # images of an epoch


@dataclass(frozen=True, kw_only=True)
class TrainCase:
    """A packaged recipe on drawn images, with changes by the place of their keys."""

    recipe: str
    batch: int = 128
    changes: Mapping[str, object] = field(default_factory=dict)
    images: int = 0  # a whole epoch over so many is timed, with its validation; 0 times a step
    validation: int = 64

    def load(self, images: int) -> Recipe:
        """The recipe on that many drawn training images."""
        whole = images + self.validation
        changes = {
            "data.name": drawn_dataset(whole),
            "data.validation": self.validation / whole,
            "batch_size": self.batch,
            **self.changes,
        }
        return load_recipe(self.recipe, changes=changes)


DR, EFFICIENT, EM = "mnist/dr_capsnet", "mnist/efficient_capsnet_fast", "mnist/em_capsnet"
# its images have masks, and shrink to a side at which a step fits a CPU
SEGMENTATION = TrainCase(
    recipe="segmentation/segcaps_r3",
    batch=16,
    changes={"data.name": "synthetic_masks", "data.validation": 0.1, "model.image_size": 64},
)
DEEP = TrainCase(recipe="fashion_mnist/deepcaps_modern", batch=256)  # a step takes half a minute on a CPU
EPOCH = TrainCase(recipe=DR, images=60_000, validation=3_000)


def train_suite(
    bench: Bench,
    *,
    quick: bool = False,
    steps: tuple[TrainCase, ...] | None = None,
    epochs: tuple[TrainCase, ...] = (EPOCH, replace(EPOCH, recipe=EFFICIENT)),
) -> Iterator[Measurement]:
    """Steps of DR-, Efficient- and EM-CapsNet and SegCaps in both precisions, and epochs of MNIST's size.

    On a GPU there are steps of DeepCaps too.
    """
    on_gpu = bench.device.type == "cuda"
    batches = (128, 1024) if on_gpu else (128,)
    precisions: tuple[Precision, ...] = ("32",) if quick else ("32", "bf16")
    usual = [TrainCase(recipe=name, batch=size) for name in (DR, EFFICIENT) for size in batches]
    cases = steps or [*usual, TrainCase(recipe=EM), SEGMENTATION, *([DEEP] if on_gpu else [])]
    for case, precision in product(cases, precisions):
        for backend in _backends(case, bench.device):
            yield _step(bench, case, backend, precision)
    for case, precision in product(epochs, precisions):
        yield _epoch(bench, case, _backends(case, bench.device)[-1], precision, quick)


def _backends(case: TrainCase, device: torch.device) -> list[str]:
    options = dict(case.load(_STEPS * case.batch).model)
    names = ["torch"] if kernel_free(options.pop("name"), device, **options) else ["torch", "fused"]
    if device.type != "cuda":
        return names
    return [*names, *(f"{name}+graph" for name in names), f"{names[-1]}+compile+graph"]


def _step(bench: Bench, case: TrainCase, backend: str, precision: Precision) -> Measurement:
    recipe = case.load(_STEPS * case.batch)
    options = dict(recipe.model)
    name = options.pop("name")
    return Measurement(
        case=f"{_words(recipe)}, step, {precision}",
        backend=backend,
        batch=case.batch,
        build=partial(_step_work, bench.device, recipe, backend, precision),
        counts_setup=True,
        cost=partial(model_cost, name, case.batch, options, backward=True, adam=True),
        precision=precision,
        sizes=f"model {name}, images {case.batch}x1x{options.get('image_size', 28)} px",
        facts={"precision": precision, "model": name, "pass": "step"},
    )


def _epoch(bench: Bench, case: TrainCase, backend: str, precision: Precision, quick: bool) -> Measurement:
    recipe = case.load(case.images)
    too_long = bench.device.type == "cpu" and case.images > _MOST_ON_CPU
    return Measurement(
        case=f"{_words(recipe)}, epoch of {case.images:,} + {case.validation:,}, {precision}",
        backend=backend,
        batch=case.batch,
        build=partial(_epoch_work, bench.device, recipe, backend, precision),
        images=case.images,
        counts_setup=True,
        effort=Effort(warm_ups=0, seconds=0.0, least=1 if quick else 3, most=3),
        precision=precision,
        sizes=f"model {recipe.model['name']}, images {case.batch}x1x28x28",
        skip="an epoch takes minutes on a CPU: multiply the time of a step by the number of steps"
        if too_long
        else None,
        facts={"precision": precision, "model": recipe.model["name"], "pass": "epoch"},
    )


def _words(recipe: Recipe) -> str:
    side = recipe.model.get("image_size")
    decoder = " with decoder" if recipe.loss.reconstruction else ""
    return f"{recipe.model['name']}{decoder}" + (f", {side} px" if side else "")


def _session(device: torch.device, recipe: Recipe, backend: str, precision: Precision) -> Session:
    fabric = launch(Machine(device=device.type, precision=precision))
    recipe = replace(recipe, compile="+compile" in backend)
    session = Session(fabric, recipe, None, capture=backend.endswith("+graph"))
    use_kernels(session.network, backend.startswith("fused"))
    return session


def _step_work(device: torch.device, recipe: Recipe, backend: str, precision: Precision) -> Work:
    session = _session(device, recipe, backend, precision)
    batches = chain.from_iterable(session.epoch(number) for number in count())

    def step() -> None:
        session.step(next(batches))
        session.advance()

    for _ in range(_WARM_UP if backend.endswith("+graph") else 0):
        step()
    return step


def _epoch_work(device: torch.device, recipe: Recipe, backend: str, precision: Precision) -> Work:
    session = _session(device, recipe, backend, precision)
    numbers = count()

    def epoch() -> Evaluation:
        for indices in session.epoch(next(numbers)):
            session.step(indices)
            session.advance()
        session.step.first_bad_step()
        parts = session.task, session.pipeline, session.objective
        return evaluate(session.model, session.splits.validation, *parts)

    return epoch


def drawn_dataset(size: int) -> str:
    """The name of a dataset of `size` drawn digits, the same few hundred over and over."""
    name = f"drawn_mnist_{size}"
    if name not in DATASETS:
        info = replace(DATASETS["mnist"], name=name, num_train=size, reader=partial(_read_drawn, size=size))
        DATASETS.register(name)(info)
    return name


def _read_drawn(data_dir: Path, split: str, *, size: int) -> LabelledImages:
    drawn = synthetic_images(DATASETS["mnist"], "train", min(size, 512))
    return drawn.subset(torch.arange(size) % len(drawn))
