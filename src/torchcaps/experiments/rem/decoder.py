"""Chapter 6, REM with a decoder: trained together with the network, or on top of a frozen one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Adam

from torchcaps.core.seeding import derive_seed, generator
from torchcaps.data import LabelledImages
from torchcaps.layers import FcDecoder
from torchcaps.losses import reconstruction_loss
from torchcaps.parse import perturb_capsule
from torchcaps.train import Pipeline, load_split
from torchcaps.viz import draw_perturbations, to_png

from ..plan import Claim, Experiment, PlannedRun, Rows, register
from . import claims
from .pictures import pack_pictures, unpack_pictures
from .reuse import SHARED_RUNS, LookAgain, TakeOver, Trained, again, vary
from .tables import CHAPTER, DEVIATIONS, METRICS, MNIST_TABLE, OTHERS_TABLE, SMOKE, study_trees

_TABLES = (MNIST_TABLE, OTHERS_TABLE)
_DECODER = ("model.decoder=fc", "loss.reconstruction=0.0005")
_EPOCHS = 30  # of a decoder on a frozen network, which has seen enough by then
_BATCH = 128
_DIGITS = (2, 5, 8)
_OFFSETS = (-0.2, -0.1, 0.0, 0.1, 0.2)


def class_poses(network: nn.Module, data: LabelledImages, pipeline: Pipeline) -> tuple[Tensor, Tensor]:
    """Class capsules of all images, (images, classes, pose), and the classes they are read as."""
    with torch.no_grad():
        parts = [network(pipeline.for_evaluation(part)[1]) for part in torch.split(data.images, 500)]
    return torch.cat([part.poses for part in parts]), torch.cat([part.activations for part in parts]).argmax(
        1
    )


def train_decoder(
    network: nn.Module, data: LabelledImages, pipeline: Pipeline, *, epochs: int, seed: int
) -> FcDecoder:
    """A decoder that draws the images from the true class's capsule of a network that does not change."""
    poses, _ = class_poses(network, data, pipeline)
    shape = pipeline.for_evaluation(data.images[:1])[0].shape
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "decoder"))
        decoder = FcDecoder(poses.shape[1], poses.shape[2], (shape[1], shape[2], shape[3])).to(poses.device)
    optimizer = Adam(decoder.parameters())
    for epoch in range(epochs):
        order = torch.randperm(len(data), generator=generator(seed, "decoder order", epoch))
        for chosen in torch.split(order.to(poses.device), _BATCH):
            images, _ = pipeline.for_evaluation(data.images[chosen])
            loss = reconstruction_loss(decoder(poses[chosen], data.labels[chosen]), images)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return decoder.eval()


def class_means(data: LabelledImages, pipeline: Pipeline) -> Tensor:
    """The mean image of each class: the best drawing for one who knows the class alone."""
    images, _ = pipeline.for_evaluation(data.images)
    is_class = nn.functional.one_hot(data.labels, len(data.classes)).to(images.dtype)
    total = torch.einsum("nk,nchw->kchw", is_class, images)
    return total / is_class.sum(0).clamp(min=1)[:, None, None, None]


def _reconstruct(trained: Trained, run: PlannedRun) -> tuple[dict[str, Any], dict[str, Any]]:
    """Errors on the test images, and a few of them with one dimension of their capsule changed."""
    network, test, pipeline = trained.run.model, trained.data, trained.pipeline
    known, _ = load_split(trained.run.recipe.data, "train", trained.data_dir, test.labels.device)
    decoder = train_decoder(
        network, known, pipeline, epochs=min(_EPOCHS, trained.run.recipe.epochs), seed=run.seed
    )
    poses, predicted = class_poses(network, test, pipeline)
    images, _ = pipeline.for_evaluation(test.images)
    with torch.no_grad():
        drawn = decoder(poses, predicted)
    chosen = [int((test.labels == digit).int().argmax()) for digit in _DIGITS]
    perturbed = [
        perturb_capsule(decoder, poses[i : i + 1], predicted[i : i + 1], _OFFSETS).squeeze(2) for i in chosen
    ]
    metrics = {
        "reconstruction_error": float(reconstruction_loss(drawn, images)),
        "class_mean_error": float(reconstruction_loss(class_means(known, pipeline)[test.labels], images)),
    }
    return metrics, {"perturbed": pack_pictures(torch.stack(perturbed))}  # (digit, pose, offset, ...)


def draw_reconstructed(rows: Rows, path: Path) -> None:
    """Digits side by side, each with the dimensions of its capsule changed, for the network with REM."""
    row = next((row for row in rows if row["setting"].endswith("+REM")), rows[0])
    digits = unpack_pictures(row["runs"][0]["curve"]["perturbed"])
    side_by_side = np.concatenate(list(digits), axis=1)
    path.write_bytes(to_png(draw_perturbations(side_by_side, _OFFSETS * len(digits))))


_FIGURES = {  # setting of a table without decoder: name with it, accuracy, entropy
    "DR-CapsNet+Q": ("MNIST, DR-CapsNet+Q", 99.58, 9.88),
    "DR-CapsNet+REM": ("MNIST, DR-CapsNet+REM", 99.63, 9.40),
    "Fashion-MNIST, DR-CapsNet+Q": ("Fashion-MNIST, DR-CapsNet+Q", 92.57, 8.49),
    "Fashion-MNIST, DR-CapsNet+REM": ("Fashion-MNIST, DR-CapsNet+REM", 92.76, 6.15),
    "CIFAR-10, DR-CapsNet+Q": ("CIFAR-10, DR-CapsNet+Q", 72.40, 4.55),
    "CIFAR-10, DR-CapsNet+REM": ("CIFAR-10, DR-CapsNet+REM", 76.00, 3.85),
}
_DATA = ("mnist", "fashion_mnist", "cifar10")
DECODER_TABLE = register(
    Experiment(
        label="tab:decoder-acc-supp",
        chapter=CHAPTER,
        title="Accuracy of networks trained with a decoder",
        data=_DATA,
        gpu_minutes=2000,
        metrics=METRICS,
        budgets={"smoke": SMOKE},
        perform=study_trees,
        settings=tuple(
            vary(_TABLES, of, name, _DECODER, thesis={"quantized_accuracy": accuracy})
            for of, (name, accuracy, _) in _FIGURES.items()
        ),
        claims=(
            Claim(
                "With a decoder too, REM keeps the accuracy.",
                claims.keeps_accuracy("tab:decoder-acc-supp", 3),
            ),
        ),
        deviations=DEVIATIONS,
    )
)
register(
    Experiment(
        label="tab:decoder-ent-supp",
        chapter=CHAPTER,
        title="Parse-tree entropy of networks trained with a decoder",
        data=_DATA,
        gpu_minutes=0,  # on top of the other table's
        at_once=1,  # they share its runs
        metrics=("entropy", "keys", "sparsity"),
        budgets={"smoke": SMOKE},
        perform=TakeOver((DECODER_TABLE,), study_trees),
        settings=tuple(
            again((DECODER_TABLE,), name, thesis={"entropy": entropy})
            for name, _, entropy in _FIGURES.values()
        ),
        claims=(
            Claim("With a decoder the entropy with REM is almost that without.", claims.decoder_keeps_trees),
        ),
        deviations=(f"The runs are those of {DECODER_TABLE.label}.", *DEVIATIONS),
    )
)
register(
    Experiment(
        label="fig:reconstruction",
        chapter=CHAPTER,
        title="Class capsules of a frozen DR-CapsNet+REM, drawn with one dimension changed",
        data=("mnist",),
        gpu_minutes=5,  # on top of the table's
        seeds=1,  # it is about one picture, and results hold all of its pixels
        at_once=1,  # they share the table's runs
        metrics=("reconstruction_error", "class_mean_error"),
        budgets={"smoke": SMOKE},
        perform=LookAgain(_reconstruct, (MNIST_TABLE,)),
        settings=tuple(again((MNIST_TABLE,), name) for name in ("DR-CapsNet+Q", "DR-CapsNet+REM")),
        draw=draw_reconstructed,
        claims=(
            Claim(
                "Capsules with low entropy still tell how an object is arranged, not its class alone.",
                claims.draws_more_than_the_class,
            ),
        ),
        deviations=(
            SHARED_RUNS.format(MNIST_TABLE.label),
            f"The decoder learns for at most {_EPOCHS} epochs, from images that are not shifted. Errors are "
            "squared pixel differences, summed over a test image.",
            "The figure is of the network with REM and the first seed.",
        ),
    )
)
