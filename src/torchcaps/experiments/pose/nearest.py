"""The training image that looks most alike, as a yardstick for networks that learn rotations."""

from __future__ import annotations

import time
from dataclasses import replace

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from torchcaps.core import PoseOutput, PoseTarget
from torchcaps.train import Objective, Pipeline, Source, evaluate, task_named

from ..plan import Job, Outcome

_AT_ONCE = 256  # images that are compared with all others


class NearestImage(nn.Module):
    """Answers with class and rotation of the stored image at the smallest distance, summed over pixels."""

    def __init__(
        self,
        inputs: Float[Tensor, "stored channels height width"],
        labels: Int64[Tensor, " stored"],
        rotations: Float[Tensor, "stored 4"],
        classes: int,
    ) -> None:
        super().__init__()
        self.stored, self.labels, self.rotations = inputs.flatten(1), labels, rotations
        self.squares, self.classes = self.stored.square().sum(1), classes

    def forward(
        self,
        images: Float[Tensor, "batch channels height width"],
        labels: Int64[Tensor, " batch"] | None = None,
        *,
        return_routing: bool = False,
    ) -> PoseOutput:
        """The one class it found, and its rotation for every class."""
        del labels, return_routing  # as a network is called
        parts = torch.split(images.flatten(1), _AT_ONCE)
        found = torch.cat([(self.squares - 2 * part @ self.stored.T).argmin(1) for part in parts])
        activations = F.one_hot(self.labels[found], self.classes).to(images.dtype)
        return PoseOutput(activations, self.rotations[found].unsqueeze(1).expand(-1, self.classes, -1))


@torch.no_grad()
def look_up_rotations(job: Job) -> None:
    """Measure how well the nearest training image answers; a seed draws which images are there."""
    begun, device, task = time.perf_counter(), job.device, task_named("pose")
    recipe = job.run.recipe
    settings = replace(recipe.data, split_seed=job.run.seed)
    source = Source(settings, task, data_dir=job.data_dir)
    pipeline, test = Pipeline(settings, source.info()), source.test(device)
    train = source.splits(device).train
    parts = [pipeline.for_evaluation(images, targets) for images, targets in train.batches(_AT_ONCE)]
    targets = [part.targets for part in parts if isinstance(part.targets, PoseTarget)]
    model = NearestImage(
        torch.cat([part.inputs for part in parts]),
        torch.cat([each.labels for each in targets]),
        torch.cat([each.rotations for each in targets]),
        len(train.classes),
    )
    objective = Objective(recipe.loss, has_decoder=False, device=device)
    found = evaluate(
        model,
        test,
        task,
        pipeline,
        objective,
        on_images=lambda images: job.watcher.testing(images, len(test)),
    )
    outcome = Outcome(
        metrics=found.named("test"),
        parameters=0,
        seconds=time.perf_counter() - begun,
        precision="32",
    )
    job.leave_result(outcome)
