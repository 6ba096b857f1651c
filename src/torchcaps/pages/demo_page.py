"""The page of the demonstration: what a trained network answers, and how it decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torchcaps.core import CapsuleOutput
from torchcaps.data import LabelledImages
from torchcaps.inspection import count_parameters
from torchcaps.parse import (
    OFFSETS,
    capsule_maps,
    evidence_on_image,
    parse_tree,
    perturb_capsule,
    through_layers,
)
from torchcaps.train import Pipeline, Run
from torchcaps.train.tasks import Confusion
from torchcaps.viz import (
    Report,
    draw_confusion,
    draw_curves,
    draw_evidence,
    draw_perturbations,
    draw_reconstructions,
    draw_tree,
)

from .compare import RunSummary


class DemoPage:
    """Runs the network on the test images and draws its answers."""

    def __init__(self, run: Run, test: LabelledImages) -> None:
        self.run, self.test = run, test
        pipeline = Pipeline(run.recipe.data, run.info())
        self.shown, self.inputs, _ = pipeline.for_evaluation(test.images)
        self.predicted = self._predict()
        self.examples = self._one_of_each_class()

    @torch.no_grad()
    def _predict(self) -> Tensor:
        return torch.cat(
            [self.run.model(part).activations.argmax(1) for part in torch.split(self.inputs, 250)]
        )

    def _one_of_each_class(self) -> list[int]:
        """The first correctly read image of each class."""
        right = self.predicted == self.test.labels
        firsts = [
            (right & (self.test.labels == label)).nonzero()[:1, 0] for label in range(len(self.test.classes))
        ]
        return [int(index) for index in torch.cat(firsts)]

    @torch.no_grad()
    def _look(self, indices: list[int]) -> CapsuleOutput:
        return self.run.model(self.inputs[indices], return_routing=True)

    def build(self, summary: RunSummary) -> Report:
        """The page, up to the comparison with the twin."""
        rows = self.run.metrics
        report = Report("A capsule network, just trained", "What it learnt, and how it decides")
        report.numbers(
            {
                "held-out accuracy": f"{summary.accuracy:.2%}",
                "without routing": f"{summary.even_accuracy:.2%}",
                "held-out digits": f"{summary.images:,}",
                "parameters": f"{count_parameters(self.run.model):,}",
                "training": f"{sum(row['seconds'] for row in rows):.0f} s",
            }
        )
        self._explain_decisions(report)
        self._show_capsules(report)
        report.section(
            "How it learnt",
            "Loss and accuracy after each pass over the training digits. The weights kept are those with the "
            "lowest loss on validation digits, which are never trained on.",
            draw_curves(rows, kept=self.run.epoch),
        )
        report.section(
            "What it confuses",
            "True class down, predicted class across, for digits held out from training and validation.",
            draw_confusion(self._confusion(), self.test.classes),
        )
        return report

    def _confusion(self) -> Tensor:
        """How many images of each class were read as which."""
        counts = Confusion(len(self.test.classes), self.test.labels.device)
        counts.add(self.test.labels, self.predicted)
        return counts.table()

    def _explain_decisions(self, report: Report) -> None:
        report.section(
            "Why this class",
            "Each small capsule looks at one patch of the image and votes for the pose of every capsule "
            "above it. Routing gives more of its vote to those that others agree on. The drawing shows what "
            "led most strongly to the winner: the parse tree of the image. The second number above is the "
            "accuracy of the trained network when every vote is split evenly instead.",
            self.tree(self.examples[0]),
        )
        report.section(
            "Where it looked",
            "Saliency is the activation of the capsules times their coupling to the predicted class along "
            "all paths, at the middle of the patch that each sees, from the lowest place to the highest. "
            "Patches overlap: a place beside a stroke sees it too. Below, the activation of each class.",
            self.evidence(self.examples[1:7]),
        )

    def _show_capsules(self, report: Report) -> None:
        wrong = (self.predicted != self.test.labels).nonzero()[:2, 0].tolist()
        chosen = self.examples[:8] + wrong
        output = self._look(chosen)
        report.section(
            "What a capsule remembers",
            "The winning capsule alone is decoded back into an image: its sixteen numbers hold how this "
            "digit was written. Digits in a red frame were read wrongly.",
            draw_reconstructions(
                self.shown[chosen],
                output.reconstruction,  # type: ignore[arg-type]
                self.test.labels[chosen],
                self.predicted[chosen],
                class_names=self.test.classes,
            ),
        )
        report.section(
            "What its numbers change",
            "One number of the winning capsule is changed at a time, by the amount above the column; shown "
            "are the six that matter most. After a training this short the changes are faint; after longer "
            "ones some numbers change slant, width or loops.",
            draw_perturbations(self._perturb(self.examples[2]), OFFSETS, most=6),
        )

    def evidence(self, chosen: list[int]) -> Any:
        """The drawing of where the network looked in some images."""
        output = self._look(chosen)
        trace, classes = through_layers(output.layers), output.activations.argmax(1)
        size = (self.shown.shape[-2], self.shown.shape[-1])
        return draw_evidence(
            self.shown[chosen],
            evidence_on_image(trace, classes, capsule_maps(self.run.model), size),
            output.activations,
            labels=self.test.labels[chosen],
            class_names=self.test.classes,
        )

    def compare(self, report: Report, twin: DemoPage, summaries: Sequence[RunSummary]) -> None:
        """Compare this network with the twin that was pruned while it learnt."""
        names = ("as it was trained", "with REM")
        report.section(
            "The same network with REM",
            "Couplings rounded to levels make parse trees that can be counted. Routing entropy minimization "
            "(REM) prunes weights that the loss does not need while the network learns; here the decoder "
            "stays whole. Entropy is the number of bits that it takes to name the tree of a digit. After so "
            "few digits and epochs REM need not leave fewer trees.",
            table=[
                {
                    "network": name,
                    "accuracy": f"{found.accuracy:.2%}",
                    "rounded couplings": f"{found.quantized_accuracy:.2%}",
                    "even couplings": f"{found.even_accuracy:.2%}",
                    "weights pruned": f"{found.sparsity:.1%}",
                    "parse trees": f"{found.keys:,} of {found.images:,} digits",
                    "entropy": f"{found.entropy:.2f} bits",
                }
                for name, found in zip(names, summaries, strict=True)
            ],
        )
        report.section(
            "Where the pruned network looked", "The same digits as above.", twin.evidence(self.examples[1:7])
        )

    def tree(self, index: int) -> Any:
        """The drawing of one image's parse tree."""
        output = self._look([index])
        (where,) = capsule_maps(self.run.model)
        return draw_tree(
            self.shown[index],
            parse_tree(output.layers, grid=where.grid),
            field=where.field,
            class_names=self.test.classes,
            label=int(self.test.labels[index]),
        )

    def _perturb(self, index: int) -> Tensor:
        """Reconstructions with each dimension of the winning capsule moved by each offset."""
        output = self._look([index])
        decoder: Any = self.run.model.decoder
        return perturb_capsule(decoder, output.poses, output.activations.argmax(1))
