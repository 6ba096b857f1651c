"""What the couplings of a forward pass say: saliency maps and parse trees."""

from .saliency import ReceptiveField, capsule_grid, place_map, receptive_field, saliency_map, upsample_map
from .tree import Edge, Node, ParseTree, parse_tree

__all__ = [
    "Edge",
    "Node",
    "ParseTree",
    "ReceptiveField",
    "capsule_grid",
    "parse_tree",
    "place_map",
    "receptive_field",
    "saliency_map",
    "upsample_map",
]
