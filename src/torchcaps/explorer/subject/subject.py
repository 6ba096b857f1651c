"""One network of the page: it takes a picture and gives all that there is to see of its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import torch
from torch import Tensor, nn

from torchcaps.core import CapsuleOutput, UserError
from torchcaps.data import normalize
from torchcaps.parse import (
    OFFSETS,
    capsule_maps,
    contribution_obstacle,
    contributions,
    evidence_on_image,
    fully_connected,
    perturb_capsule,
    through_layers,
)
from torchcaps.train import Batch, Pipeline, Run
from torchcaps.zoo import hint_for, preparation_of

from ..upload import Ready, make_ready
from .covering import Covering, Coverings
from .rounds import Round, count_rounds, earlier_rounds, last_round


@dataclass(frozen=True)
class Look:
    """One image, seen by one network.

    Attributes:
        shown: (channels, height, width) in [0, 1].
        activations: Of the classes.
        winner: The class with the largest.
        poses: The numbers of all class capsules, (classes, pose).
        last: The last round of routing; None where there are no parse trees, and then `obstacle` says why.
        evidence: On the image, or None without places.
        shares: What each child of the classes adds to the length of the winner, of that length.
        drawn: What the decoder draws of the winner, in [0, 1]; None without a decoder.
        changes: How much each number of the winner changes that drawing, on average over its pixels.
    """

    shown: Tensor
    activations: Tensor
    winner: int
    poses: Tensor
    last: Round | None
    obstacle: str
    evidence: Tensor | None
    shares: Tensor | None
    drawn: Tensor | None
    changes: Tensor | None


class Subject:
    """A run that classifies images, ready to be asked; one question at a time.

    Args:
        run: The trained network.
        title: Its name on the page.
        data_dir: Folder of the datasets.
    """

    def __init__(self, run: Run, title: str, data_dir: Path | None = None) -> None:
        run.expect_task("classification")
        self.run, self.title, self.data_dir = run, title, data_dir
        self.info = run.info(data_dir)
        self.pipeline = Pipeline(run.recipe.data, self.info)
        self.is_digit = preparation_of(run.recipe.data.name) == "digit"
        self._maps = capsule_maps(run.model)
        one = self._maps[0] if len(self._maps) == 1 else None
        self._grid = None if one is None else one.grid
        self.field = None if one is None else one.field  # what a capsule of the first layer sees
        self.num_rounds = count_rounds(run.model)
        self._coverings = Coverings()
        self._lock = Lock()  # routing in rounds changes the network for a moment

    def read(self, content: bytes) -> Ready:
        """The bytes of an image file, made ready."""
        return make_ready(content, self.info, is_digit=self.is_digit)

    def _prepare(self, image: Tensor) -> Batch:
        """An image, given as bytes, in [0, 1] and as the network takes it."""
        return self.pipeline.for_evaluation(image.to(self.run.device))

    @torch.no_grad()
    def look(self, image: Tensor) -> Look:
        """All there is to see of an image, given as bytes (1, channels, height, width)."""
        shown, inputs, _ = self._prepare(image)
        network = self.run.model
        with self._lock:
            output: CapsuleOutput = network(inputs, return_routing=True)
            if not bool(output.activations.isfinite().all()):
                raise UserError("The network answers with numbers that are not finite: it is damaged.")
            chosen = output.activations.argmax(1)
            last, obstacle = self._last_round(output, int(chosen))
            evidence, shares = self._evidence(output, chosen, (shown.shape[-2], shown.shape[-1]))
            drawn, changes = self._draw(output.poses, chosen)
        return Look(
            shown=shown[0].cpu(),
            activations=output.activations[0].float().cpu(),
            winner=int(chosen),
            poses=output.poses[0].float().cpu(),
            last=last,
            obstacle=obstacle,
            evidence=evidence,
            shares=shares,
            drawn=drawn,
            changes=changes,
        )

    def hint(self, image: Tensor) -> str:
        """What a photographed digit would be if it were turned, where `torchcaps predict` says so."""
        with self._lock:
            return hint_for(self.run, image, self.info)

    def _draw(self, poses: Tensor, chosen: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """The drawing of a capsule, and what each number does to it, tried at both ends of its slider."""
        decoder = self.run.model.decoder
        if decoder is None:
            return None, None
        drawn = decoder(poses, chosen).float().clamp(0, 1).cpu()[0]
        ends = perturb_capsule(decoder, poses, chosen, (OFFSETS[0], OFFSETS[-1]))
        return drawn, (ends.float().clamp(0, 1).cpu() - drawn).abs().flatten(1).mean(1)

    @torch.no_grad()
    def perturb(self, look: Look) -> Tensor:
        """Drawings in [0, 1] with a number of the winner changed, (pose, offsets, *image)."""
        decoder = self._need_decoder()
        poses, chosen = (each.to(self.run.device) for each in (look.poses[None], torch.tensor([look.winner])))
        with self._lock:
            return perturb_capsule(decoder, poses, chosen).float().clamp(0, 1).cpu()

    def _last_round(self, output: CapsuleOutput, winner: int) -> tuple[Round | None, str]:
        try:
            return last_round(self.run.model, winner, self._grid, output), ""
        except UserError as error:
            return None, str(error)

    @torch.no_grad()
    def earlier_rounds(self, image: Tensor, winner: int) -> list[Round]:
        """What the network would say of an image if routing stopped earlier, from the first round on."""
        self._check_class(winner)
        inputs = self._prepare(image).inputs
        with self._lock:
            return earlier_rounds(self.run.model, inputs, winner, self._grid)

    def _evidence(
        self, output: CapsuleOutput, chosen: Tensor, size: tuple[int, int]
    ) -> tuple[Tensor | None, Tensor | None]:
        """Activation times coupling on the image, and what each child adds to the winner's length."""
        try:
            layers = fully_connected(output.layers)
        except UserError:  # the page says why in the place of the tree
            return None, None
        heat = None
        if self._maps:
            heat = evidence_on_image(through_layers(layers), chosen, self._maps, size)[0].float().cpu()
        if contribution_obstacle(self.run.model) is not None:
            return heat, None
        found = contributions(self.run.model, layers[-1], chosen)
        return heat, found.shares[0].float().cpu()

    @torch.no_grad()
    def cover(self, image: Tensor, winner: int) -> Covering:
        """What covering places of an image costs a class; each call for the same image adds places."""
        self._check_class(winner)
        settings = self.pipeline.settings.preprocess

        def activation_of(images: Tensor) -> Tensor:
            with self._lock:
                return self.run.model(normalize(images, settings, self.info)).activations[:, winner]

        def start() -> Covering:
            return Covering(activation_of, self._prepare(image).images)

        return self._coverings.advance(winner, image, start)

    @torch.no_grad()
    def reconstruct(self, winner: int, poses: Sequence[Sequence[float]]) -> Tensor:
        """The image (channels, height, width) that the decoder draws of a class from these capsules."""
        decoder = self._need_decoder()
        self._check_class(winner)
        given = torch.tensor(poses, dtype=torch.float32, device=self.run.device)[None]
        try:
            with self._lock:
                drawn = decoder(given, torch.tensor([winner], device=self.run.device))[0]
        except RuntimeError as error:  # only the decoder knows how many numbers it takes
            raise UserError("The capsules of this network have another number of numbers.") from error
        return drawn.float().clamp(0, 1).cpu()

    def _need_decoder(self) -> nn.Module:
        if self.run.model.decoder is None:
            raise UserError("This network has no decoder: it cannot draw what a capsule holds.")
        return self.run.model.decoder

    def _check_class(self, number: int) -> None:
        if not 0 <= number < len(self.info.classes):
            raise UserError("There is no such class.")
