"""Draw what votes and routing are, on four parts of a face: `python docs/gallery/draw_parts.py docs/gallery`.

Poses are 3x3 matrices of the plane. Votes come from `cast_votes`, couplings from `dynamic_routing`.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import torch
from matplotlib.axes import Axes
from torch import Tensor

from torchcaps.layers import cast_votes
from torchcaps.routing import dynamic_routing
from torchcaps.viz import to_png
from torchcaps.viz.style import INK, MUTED, SERIES, SMALL, TEXT, TITLE, axes_at, canvas

PARTS = ("left eye", "right eye", "nose", "mouth")
FACE = ((-0.45, 0.35, 0), (0.45, 0.35, 0), (0, 0, 0), (0, -0.55, 0))  # x, y, degrees in a face
OTHER = (
    (-0.3, 0.5, 90),
    (0.5, 0.3, -90),
    (0.5, 0.4, 180),
    (0.3, -0.5, 20),
)  # in another whole
MISPLACED = ((-0.7, -0.3, 20), (0.45, 0.35, 0), (0.1, 0.75, 60), (-0.1, -0.15, -70))
ROUNDS = (1, 2, 3, 5)
_CIRCLE = torch.linspace(0, 2 * math.pi, 60)


def frame(x: float, y: float, degrees: float) -> Tensor:
    """The pose of something at (x, y), turned counter-clockwise."""
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return torch.tensor([[cos, -sin, x], [sin, cos, y], [0.0, 0.0, 1.0]])


def arranged(layout: tuple, whole: Tensor) -> Tensor:
    """Poses of the parts of a layout inside a whole, (parts, 3, 3)."""
    return torch.stack([whole @ frame(*part) for part in layout])


def votes_of(poses: Tensor) -> Tensor:
    """What each part says of the pose of both wholes, (parts, wholes, 3, 3).

    The matrix of a part is the inverse of its place in the whole, which a network has to learn.
    """
    wholes = [torch.stack([frame(*part).inverse() for part in layout]) for layout in (FACE, OTHER)]
    weight = torch.stack(wholes, dim=2)  # (parts, 3, wholes, 3)
    return cast_votes(poses.flatten(1)[None], weight, pose_rows=3)[0].unflatten(-1, (3, 3))


def outline(name: str) -> Tensor:
    """The shape of a part in its own frame, as points (2, n)."""
    if name == "nose":
        return torch.tensor([[-0.1, 0.1, 0.0, -0.1], [-0.14, -0.14, 0.16, -0.14]])
    if name == "mouth":
        bow = torch.linspace(math.pi, 2 * math.pi, 30)
        return torch.stack([0.38 * bow.cos(), 0.2 * bow.sin()])
    return torch.stack([0.16 * _CIRCLE.cos(), 0.11 * _CIRCLE.sin()])


def place(points: Tensor, pose: Tensor) -> Tensor:
    """Points of a frame as they stand on the page."""
    return pose[:2, :2] @ points + pose[:2, 2:]


def draw_scene(axes: Axes, poses: Tensor, whole: int) -> None:
    """The parts, and in the colour of each the outline of the whole that it votes for."""
    head = torch.stack([0.95 * _CIRCLE.cos(), 1.2 * _CIRCLE.sin()])
    up = torch.tensor([[0.0, 0.0], [1.2, 1.45]])
    for name, pose, votes, colour in zip(PARTS, poses, votes_of(poses), SERIES, strict=False):
        for points in (head, up):
            axes.plot(*place(points, votes[whole]), color=colour, linewidth=1.3, alpha=0.75)
        axes.fill(*place(outline(name), pose), facecolor="none", edgecolor=colour, linewidth=2.6)
    axes.set(xlim=(-2.2, 2.2), ylim=(-1.9, 1.9), aspect="equal")
    axes.set_axis_off()


def draw_votes() -> bytes:
    """Three arrangements of the parts, with the faces that they vote for."""
    figure = canvas(920, 310)
    turned = frame(0.25, -0.1, 35)
    scenes = {
        "parts in their places: the votes agree": arranged(FACE, frame(0, 0, 0)),
        "the face turns: the votes turn with it": arranged(FACE, turned),
        "parts misplaced: the votes disagree": arranged(MISPLACED, frame(0, 0, 0)),
    }
    for column, (title, poses) in enumerate(scenes.items()):
        axes = axes_at(figure, (10 + column * 302, 44, 296, 256))
        axes.set_title(title, fontsize=TEXT, color=INK)
        draw_scene(axes, poses, whole=0)
    return to_png(figure)


def draw_links(axes: Axes, poses: Tensor, rounds: int) -> None:
    """Parts below, wholes above, and lines as thick as the couplings after so many rounds."""
    votes = votes_of(poses)
    vectors = torch.cat([votes[..., :2, 2], votes[..., :2, 1]], dim=-1)  # place and direction of each whole
    routed = dynamic_routing(vectors[None], torch.ones(1, len(PARTS)), iterations=rounds)
    for part, (shares, colour) in enumerate(zip(routed.coupling[0], SERIES, strict=False)):
        for whole, share in enumerate(shares.tolist()):
            axes.plot([part, 0.6 + 1.8 * whole], [0, 1], color=colour, linewidth=7 * share, alpha=0.8)
        axes.text(part, -0.1, f"{shares[0]:.2f}", ha="center", va="top", fontsize=SMALL, color=colour)
    for whole, (name, length) in enumerate(
        zip(("face", "other"), routed.activations[0].tolist(), strict=True)
    ):
        axes.text(0.6 + 1.8 * whole, 1.06, f"{name}\n{length:.2f}", ha="center", fontsize=TEXT, color=INK)
    axes.set(xlim=(-0.4, 3.4), ylim=(-0.25, 1.35))
    axes.set_axis_off()
    axes.set_title(f"round {rounds}", fontsize=TEXT, color=MUTED)


def draw_routing() -> bytes:
    """The votes for both wholes, and how couplings gather on the one that the parts agree on."""
    figure = canvas(920, 400)
    poses = arranged(FACE, frame(0.1, 0.2, 12))
    for row, title in enumerate(("votes for a face", "votes for another whole")):
        axes = axes_at(figure, (6, 30 + row * 190, 220, 166))
        axes.set_title(title, fontsize=TEXT, color=INK)
        draw_scene(axes, poses, whole=row)
    for column, rounds in enumerate(ROUNDS):
        draw_links(axes_at(figure, (246 + column * 168, 96, 156, 230)), poses, rounds)
    note = "lines: share of a part's vote; below: its share for the face; above: length of the capsule"
    figure.text(0.62, 0.1, note, ha="center", fontsize=SMALL, color=MUTED)
    figure.text(0.62, 0.9, "Routing", ha="center", fontsize=TITLE, color=INK, fontweight="bold")
    return to_png(figure, scale=1.5)


if __name__ == "__main__":
    out = Path(sys.argv[1])
    (out / "concept-vote.png").write_bytes(draw_votes())
    (out / "concept-routing.png").write_bytes(draw_routing())
