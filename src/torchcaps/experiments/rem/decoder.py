"""Chapter 6, REM with a decoder: trained together with the network, or on top of a frozen one."""

from __future__ import annotations

from dataclasses import replace
from statistics import mean

import numpy as np
import torch

from torchcaps.losses import reconstruction_loss
from torchcaps.parse import perturb_capsule
from torchcaps.train import load_labelled
from torchcaps.viz import draw_perturbations, to_png

from ..plan import FIRST_SEED, Claim, register, take_over
from ..records import Details, Picture, Rows
from . import claims
from .frozen_decoder import class_capsules, class_means, train_decoder
from .reuse import SHARED_RUNS, Metrics, Trained, look_again, reused, varied
from .setting import REM, TreeSetting
from .tables import DEVIATIONS, METRICS, MNIST_TABLE, OTHERS_TABLE, on_rem, study_trees

_TABLES = (MNIST_TABLE, OTHERS_TABLE)
_WEIGHT = 0.0005  # of the squared error: in the thesis on normalised images, here on images in [0, 1]
_DEVIATIONS = {  # by which the thesis divides each channel of its images
    "MNIST": (0.3081,),
    "Fashion-MNIST": (0.3205,),
    "CIFAR-10": (0.2023, 0.1994, 0.2010),
}
_LIGHT = "reconstruction weight 0.0005 on images in [0, 1], unlike the thesis"
_EPOCHS = 30  # of a decoder on a frozen network, which has learnt enough by then
_DIGITS = (2, 5, 8)
_OFFSETS = (-0.2, -0.1, 0.0, 0.1, 0.2)


def _reconstruct(trained: Trained) -> tuple[Metrics, Details]:
    """Errors on the test images; of the first seed a few of them, one dimension of their capsule changed."""
    network, test, pipeline = trained.run.model, trained.data, trained.pipeline
    known, _ = load_labelled(trained.run, "train", data_dir=trained.data_dir)
    recipe = trained.run.recipe
    decoder = train_decoder(network, known, pipeline, epochs=min(_EPOCHS, recipe.epochs), seed=recipe.seed)
    poses, activations = class_capsules(network, test.images, pipeline)
    predicted = activations.argmax(1)
    images = pipeline.for_evaluation(test.images).images
    with torch.no_grad():
        drawn = decoder(poses, predicted)
    metrics: Metrics = {
        "reconstruction_error": float(reconstruction_loss(drawn, images)),
        "class_mean_error": float(reconstruction_loss(class_means(known, pipeline)[test.labels], images)),
    }
    if recipe.seed != FIRST_SEED:
        return metrics, Details()
    chosen = [int((test.labels == digit).int().argmax()) for digit in _DIGITS]
    perturbed = [
        perturb_capsule(decoder, poses[i : i + 1], predicted[i : i + 1], _OFFSETS).squeeze(2) for i in chosen
    ]
    picture = Picture.pack(torch.stack(perturbed))  # (digit, pose, offset, height, width)
    return metrics, Details(pictures={"perturbed": picture})


def draw_reconstructed(rows: Rows) -> bytes | None:
    """Digits side by side, each with the dimensions of its capsule changed, for the network with REM.

    None before the first seed has run.
    """
    row = next((row for row in rows if row.variant == REM), rows[0])
    pictures = next((run.details.pictures for run in row.runs if run.details.pictures), None)
    if pictures is None:
        return None
    digits = pictures["perturbed"].unpack()
    side_by_side = np.concatenate(list(digits), axis=1)
    return to_png(draw_perturbations(side_by_side, _OFFSETS * len(digits)))


_WAYS, _OF_THESIS = ("+Q", "+REM"), ", thesis weight"
_FIGURES = {  # network with a decoder, and the thesis's accuracy and entropy without REM and with it
    "MNIST, DR-CapsNet": ((99.58, 9.88), (99.63, 9.40)),
    "Fashion-MNIST, DR-CapsNet": ((92.57, 8.49), (92.76, 6.15)),
    "CIFAR-10, DR-CapsNet": ((72.40, 4.55), (76.00, 3.85)),
}


def weight_of_thesis(dataset: str) -> float:
    """The weight on images in [0, 1] that equals the thesis's on images divided by their deviation.

    Of several channels it is the mean.
    """
    return _WEIGHT * mean(deviation**-2 for deviation in _DEVIATIONS[dataset])


def _with_decoder(network: str) -> list[TreeSetting]:
    """A network without REM and with it, each with a decoder that has the thesis's weight, and 0.0005."""
    settings = []
    dataset = network.partition(",")[0]
    of_thesis = f"{network}{_OF_THESIS}"
    for way, (accuracy, _) in zip(_WAYS, _FIGURES[network], strict=True):
        of = f"{network}{way}".removeprefix("MNIST, ")  # the table of MNIST does not name it
        heavy, light = (
            varied(_TABLES, of, f"{name}{way}", {"model.decoder": "fc", "loss.reconstruction": weight})
            for name, weight in ((of_thesis, weight_of_thesis(dataset)), (network, _WEIGHT))
        )
        settings.append(replace(heavy, network=of_thesis, thesis={"quantized_accuracy": accuracy}))
        settings.append(replace(light, network=network, note=_LIGHT))
    return settings


_LOSSES = (
    "The thesis weighs squared errors of normalised images by 0.0005. On images in [0, 1], as ours are, that "
    "is 0.0005 divided by the squared deviation of the pixels: rows of the thesis's weight have that."
)
_DATA = ("mnist", "fashion_mnist", "cifar10")
DECODER_TABLE = register(
    on_rem(
        label="tab:decoder-acc-supp",
        title="Accuracy of networks trained with a decoder",
        data=_DATA,
        gpu_minutes=2000,
        metrics=METRICS,
        perform=study_trees,
        settings=tuple(setting for network in _FIGURES for setting in _with_decoder(network)),
        claims=(
            Claim(
                f"With a decoder too, {claims.KEEPS_ACCURACY}",
                claims.keeps_accuracy("tab:decoder-acc-supp"),
            ),
        ),
        deviations=(_LOSSES, *DEVIATIONS),
    )
)
register(
    on_rem(
        label="tab:decoder-ent-supp",
        title="Parse-tree entropy of networks trained with a decoder",
        data=_DATA,
        gpu_minutes=0,  # on top of the other table's
        at_once=1,  # they share its runs
        metrics=("entropy", "keys", "sparsity"),
        perform=take_over((DECODER_TABLE,), study_trees),
        settings=tuple(
            replace(reused((DECODER_TABLE,), f"{network}{weight}{way}"), thesis=figures)
            for network, found in _FIGURES.items()
            for way, (_, entropy) in zip(_WAYS, found, strict=True)
            for weight, figures in ((_OF_THESIS, {"entropy": entropy}), ("", {}))
        ),
        claims=(
            Claim(
                "With a decoder, REM hardly lowers the entropy, by our rule by less than a tenth.",
                claims.decoder_keeps_trees,
            ),
        ),
        deviations=(f"The runs are those of {DECODER_TABLE.label}.", *DEVIATIONS),
    )
)
register(
    on_rem(
        label="fig:reconstruction",
        title="Class capsules of a frozen DR-CapsNet+REM, drawn with one dimension changed",
        data=("mnist",),
        gpu_minutes=25,  # on top of the table's
        at_once=1,  # they share the table's runs
        metrics=("reconstruction_error", "class_mean_error"),
        perform=look_again(_reconstruct, (MNIST_TABLE,)),
        settings=tuple(reused((MNIST_TABLE,), name) for name in ("DR-CapsNet+Q", "DR-CapsNet+REM")),
        draw=draw_reconstructed,
        claims=(
            Claim(
                "Capsules with low entropy still describe the shape of an object, not its class alone: by "
                "our rule with less than half of the error of the class's mean image.",
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
