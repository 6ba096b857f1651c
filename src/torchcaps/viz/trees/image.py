"""The image of a tree: where its first capsules look, and the lines that lead from there."""

from __future__ import annotations

from torchcaps.parse import Node, ParseTree, ReceptiveField

from ..style import COOL, PAPER, WARM, Box
from .scene import Key, Place, Scene, Shape, Stroke, circle


def places_on_image(
    tree: ParseTree, box: Box, shape: tuple[int, ...], field: ReceptiveField | None
) -> dict[Key, Place]:
    """The middle of what each capsule of the first layer sees, on an image of `shape` drawn in a box."""
    left, top, width, height = box
    rows, columns, _ = tree.grid or (1, 1, 1)
    places: dict[Key, Place] = {}
    for node in tree.layer(0):
        if node.position is None:
            continue
        row, column, _ = node.position
        if field is None:
            across, down = (column + 0.5) / columns, (row + 0.5) / rows
        else:  # centres count from the middle of the first pixel
            y, x = field.centre(row, column)
            across, down = (x + 0.5) / shape[1], (y + 0.5) / shape[0]
        places[0, node.index] = (left + width * across, top + height * down)
    return places


def add_dots(scene: Scene, tree: ParseTree, places: dict[Key, Place]) -> None:
    """One dot for each place, its area by the contributions of all capsules there."""
    totals: dict[Place, float] = {}
    owners: dict[Place, list[Key]] = {}
    for edge in tree.edges:
        if edge.layer == 0 and (0, edge.child) in places:
            place = places[0, edge.child]
            totals[place] = totals.get(place, 0.0) + max(edge.contribution, 0.0)
            owners.setdefault(place, []).append((0, edge.child))
    largest = max([*totals.values(), 1e-12])
    for place, total in totals.items():
        diameter = 5 + 12 * (total / largest) ** 0.5
        keys = tuple(dict.fromkeys(owners[place]))
        scene.shapes.append(circle("dot", place, diameter, fill=WARM, keys=keys)._replace(edge=PAPER))


def add_links(scene: Scene, places: dict[Key, Place], ends: dict[Key, Place], *, is_upright: bool) -> None:
    """Thin lines from the image to the capsules that look there."""
    scene.strokes += [
        Stroke(place, ends[key], COOL, 0.8, 0.3, (key,), is_upright=is_upright)
        for key, place in places.items()
    ]


def add_field(scene: Scene, tree: ParseTree, box: Box, shape: tuple[int, ...], field: ReceptiveField) -> None:
    """A frame around what the capsules at the largest dot see of the image."""
    nodes = {node.index: node for node in tree.layer(0)}
    totals: dict[Box, float] = {}
    for edge in tree.edges:
        if edge.layer == 0 and nodes[edge.child].position is not None:
            patch = seen_patch(nodes[edge.child], field, shape)
            totals[patch] = totals.get(patch, 0.0) + max(edge.contribution, 0.0)
    if not totals:
        return
    left, top, width, height = max(totals, key=totals.__getitem__)
    across, down = box[2] / shape[1], box[3] / shape[0]
    frame = (box[0] + left * across, box[1] + top * down, width * across, height * down)
    scene.shapes.append(Shape("field", frame, 5, edge=WARM, edge_width=1.4, is_dashed=True))


def seen_patch(node: Node, field: ReceptiveField, shape: tuple[int, ...]) -> Box:
    """What a capsule with a position sees, in pixels of the image, cut at its border."""
    assert node.position is not None
    spans = []
    row, column, _ = node.position
    for centre, pixels in zip(reversed(field.centre(row, column)), (shape[1], shape[0]), strict=True):
        middle = centre + 0.5
        start, end = max(middle - field.size / 2, 0), min(middle + field.size / 2, pixels)
        spans.append((start, max(end - start, 1)))
    (left, width), (top, height) = spans
    return left, top, width, height
