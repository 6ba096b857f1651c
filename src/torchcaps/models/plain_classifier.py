"""Networks without capsules, in the clothes of a capsule network without routed layers."""

from __future__ import annotations

from abc import abstractmethod

from jaxtyping import Float, Int
from torch import Tensor

from torchcaps.core.types import CapsuleOutput, LayerTrace

from .classifier import CapsuleClassifier


class PlainClassifier(CapsuleClassifier):
    """The pose of a class is its logit, one number; the activation is its probability."""

    decoder: None = None

    @abstractmethod
    def logits(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch num_classes"]:
        """What the softmax is taken of."""

    def encode(
        self, images: Float[Tensor, "batch channels height width"], *, return_coupling: bool = True
    ) -> tuple[LayerTrace, ...]:
        """Nothing: no layer is routed."""
        del images, return_coupling
        return ()

    def forward(
        self,
        images: Float[Tensor, "batch channels height width"],
        labels: Int[Tensor, " batch"] | None = None,
        *,
        return_routing: bool = False,
    ) -> CapsuleOutput:
        """Probabilities as activations and logits as poses; labels and routing have nothing to act on."""
        del labels, return_routing
        self._check(images)
        logits = self.logits(images)
        logits = logits.to(next(self.parameters()).dtype)  # a softmax in bfloat16 would not sum to one
        return CapsuleOutput(logits.softmax(-1), logits.unsqueeze(-1))
