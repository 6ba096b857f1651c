"""A decoder that is trained on top of a frozen network."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.optim import Adam

from torchcaps.core.seeding import derive_seed, generator
from torchcaps.data import LabelledImages
from torchcaps.layers import FcDecoder
from torchcaps.losses import reconstruction_loss
from torchcaps.train import Pipeline

_BATCH = 128


def class_poses(network: nn.Module, data: LabelledImages, pipeline: Pipeline) -> tuple[Tensor, Tensor]:
    """Class capsules of all images, (images, classes, pose), and the predicted classes."""
    with torch.no_grad():
        parts = [network(pipeline.for_evaluation(part)[1]) for part in torch.split(data.images, 500)]
    activations = torch.cat([part.activations for part in parts])
    return torch.cat([part.poses for part in parts]), activations.argmax(1)


def train_decoder(
    network: nn.Module, data: LabelledImages, pipeline: Pipeline, *, epochs: int, seed: int
) -> FcDecoder:
    """A decoder that learns to draw the images from the true class's capsule of a frozen network.

    It has a loop of its own: `train` trains whole models on images, and this trains a decoder on poses that
    are computed once.
    """
    poses, _ = class_poses(network, data, pipeline)
    shape = pipeline.for_evaluation(data.images[:1]).images.shape
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "decoder"))
        decoder = FcDecoder(poses.shape[1], poses.shape[2], (shape[1], shape[2], shape[3])).to(poses.device)
    optimizer = Adam(decoder.parameters())
    for epoch in range(epochs):
        order = torch.randperm(len(data), generator=generator(seed, "decoder order", epoch))
        for chosen in torch.split(order.to(poses.device), _BATCH):
            images = pipeline.for_evaluation(data.images[chosen]).images
            loss = reconstruction_loss(decoder(poses[chosen], data.labels[chosen]), images)
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
