"""A decoder that is trained on top of a frozen network."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.optim import Adam

from torchcaps.core import derive_seed, generator, seeded
from torchcaps.data import LabelledImages
from torchcaps.layers import FcDecoder
from torchcaps.losses import reconstruction_loss
from torchcaps.train import Pipeline

_BATCH = 128
_AT_ONCE = 500  # images whose capsules are computed together


@torch.no_grad()
def class_capsules(network: nn.Module, images: Tensor, pipeline: Pipeline) -> tuple[Tensor, Tensor]:
    """Poses (images, classes, pose) and activations (images, classes) of the class capsules."""
    parts = [network(pipeline.for_evaluation(part).inputs) for part in torch.split(images, _AT_ONCE)]
    return torch.cat([part.poses for part in parts]), torch.cat([part.activations for part in parts])


def train_decoder(
    network: nn.Module, data: LabelledImages, pipeline: Pipeline, *, epochs: int, seed: int
) -> FcDecoder:
    """A decoder that learns to draw the images from the true class's capsule of a frozen network."""
    poses, _ = class_capsules(network, data.images, pipeline)

    def images_at(chosen: Tensor) -> Tensor:
        return pipeline.for_evaluation(data.images[chosen]).images

    return fit_decoder(poses, data.labels, images_at, epochs=epochs, seed=seed)


def fit_decoder(
    poses: Tensor, labels: Tensor, images_at: Callable[[Tensor], Tensor], *, epochs: int, seed: int
) -> FcDecoder:
    """A decoder from the capsules of the classes `labels` to images.

    It has a loop of its own: `train` trains whole models on images, and this trains a decoder on poses that
    are computed once.

    Args:
        poses: Class capsules, (count, classes, pose).
        labels: Which of them is drawn.
        images_at: What it should draw for some numbers of capsules, in [0, 1], with channels.
        epochs: How often all are seen.
        seed: Of weights and order.
    """
    shape = images_at(torch.zeros(1, dtype=torch.int64, device=poses.device)).shape
    with seeded(derive_seed(seed, "decoder")):
        decoder = FcDecoder(poses.shape[1], poses.shape[2], (shape[1], shape[2], shape[3])).to(poses.device)
    optimizer = Adam(decoder.parameters())
    for epoch in range(epochs):
        order = torch.randperm(len(poses), generator=generator(seed, "decoder order", epoch))
        for chosen in torch.split(order.to(poses.device), _BATCH):
            loss = reconstruction_loss(decoder(poses[chosen], labels[chosen]), images_at(chosen))
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return decoder.eval()


def class_means(data: LabelledImages, pipeline: Pipeline) -> Tensor:
    """The mean image of each class: the best reconstruction from the class alone."""
    images = pipeline.for_evaluation(data.images).images
    is_class = nn.functional.one_hot(data.labels, len(data.classes)).to(images.dtype)
    total = torch.einsum("nk,nchw->kchw", is_class, images)
    return total / is_class.sum(0).clamp(min=1)[:, None, None, None]
