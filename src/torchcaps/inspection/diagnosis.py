"""What is wrong with the routed layers of a network, in words, and what to try."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from .layer_health import LayerHealth

_IF_PRUNED = "expected while pruning (REM) cuts capsules off"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """From where on a number is called a problem; shares lie in [0, 1]."""

    dead: float = 0.01  # a capsule whose activation stays below this for every image is dead
    dead_children: float = 0.5  # share of dead children that is too many; empty corners of an image are usual
    dead_parents: float = 0.2
    starved: float = 0.1  # a parent that receives less than this times the mean coupling is starved
    starved_parents: float = 0.2
    uniform: float = 0.01  # mean distance from an even split below which routing does not choose
    collapsed: float = 0.9  # share of all coupling in one parent
    vanished: float = 0.05  # largest activation, as a part of the largest that entered the first routed layer
    alike: float = 1e-3  # deviation over the batch below which parents do not depend on the image


def find_problems(layers: Sequence[LayerHealth], images: int, limits: Limits) -> Iterator[str]:
    """One sentence for each problem; the words before its colon name it and never change."""
    if not layers:
        yield "this network has no routed layers: there are no capsules to inspect"
        return
    broken = [layer for layer in layers if not math.isfinite(layer.activations.mean + layer.from_uniform)]
    if broken:
        yield f"values are not finite: those of {_names(broken)}; try a smaller learning rate"
        return
    yield from _dead(layers, limits)
    yield from _coupling(layers, limits)
    alike = [layer for layer in layers if images > 1 and layer.diversity < limits.alike]
    if alike:
        yield (
            f"every image looks alike: activations of {_names(alike)} vary by at most "
            f"{max(layer.diversity for layer in alike):.1e} over the batch; train longer or with a smaller "
            "learning rate, and check that the images differ"
        )
    yield from _vanishing(layers, limits)


def _dead(layers: Sequence[LayerHealth], limits: Limits) -> Iterator[str]:
    kinds: list[tuple[str, Callable[[LayerHealth], float], float]] = [
        ("children", lambda layer: layer.dead_children, limits.dead_children),
        ("parents", lambda layer: layer.dead_parents, limits.dead_parents),
    ]
    for kind, share, too_many in kinds:
        found = [layer for layer in layers if share(layer) > too_many]
        if found:
            yield (
                f"{kind} are dead: up to {max(map(share, found)):.0%} of those of {_names(found)} stay below "
                f"an activation of {limits.dead:g} for every image; {_IF_PRUNED}, else try a smaller "
                f"learning rate, larger initial weights, or fewer {kind}"
            )


def _coupling(layers: Sequence[LayerHealth], limits: Limits) -> Iterator[str]:
    free = [layer for layer in layers if layer.parents > 1]  # a single parent leaves nothing to choose
    uniform = [layer for layer in free if layer.from_uniform < limits.uniform]
    if uniform:
        distance = max(layer.from_uniform for layer in uniform)
        yield (
            f"couplings are uniform: in {_names(uniform)} they are within {distance:.2%} of an even split, "
            "so routing does not choose; train longer, try larger initial matrices (init_std) or more "
            "iterations (a single iteration always looks like this)"
        )
    collapsed = [layer for layer in free if layer.largest_share > limits.collapsed]
    if collapsed:
        yield (
            f"couplings have collapsed: in {_names(collapsed)} one parent receives up to "
            f"{max(layer.largest_share for layer in collapsed):.0%} of them, whatever the image; try fewer "
            "iterations, smaller initial matrices (init_std) or a smaller learning rate"
        )
    starved = [
        layer for layer in free if layer not in collapsed and layer.starved_parents > limits.starved_parents
    ]
    if starved:
        share = max(layer.starved_parents for layer in starved)
        yield (
            f"parents are starved: up to {share:.0%} of those of {_names(starved)} receive less than "
            f"{limits.starved:g} of the mean coupling, so that they hardly take part; {_IF_PRUNED}, else try "
            "fewer parents or fewer iterations, and check that the batch shows all classes"
        )


def _vanishing(layers: Sequence[LayerHealth], limits: Limits) -> Iterator[str]:
    entered = layers[0].child_activations.max
    vanished = [layer for layer in layers if layer.activations.max < limits.vanished * entered]
    if vanished:
        first = vanished[0]
        yield (
            f"activations vanish with depth: the largest falls from {entered:.2g} before routed layer 0 to "
            f"{first.activations.max:.2g} after layer {first.layer}; try larger initial matrices (init_std), "
            "fewer capsule layers, or the exponential squash"
        )


def _names(layers: Sequence[LayerHealth]) -> str:
    numbers = [str(layer.layer) for layer in layers]
    if len(numbers) == 1:
        return f"routed layer {numbers[0]}"
    return f"routed layers {', '.join(numbers[:-1])} and {numbers[-1]}"
