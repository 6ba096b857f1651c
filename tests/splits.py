"""Splits of a dataset without a run."""

import torch

from torchcaps.train import Pipeline, Source, task_named


def split_of(settings, split):
    """Images with labels, and what becomes of them before a network sees them."""
    source, device = Source(settings, task_named("classification")), torch.device("cpu")
    found = source.test(device) if split == "test" else getattr(source.splits(device), split)
    return found, Pipeline(settings, source.info())
