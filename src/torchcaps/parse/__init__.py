"""What the couplings of a forward pass say: parse trees, how many there are, and saliency maps.

The modules here are functions of traces and couplings; those in `on_runs` apply them to trained runs.
"""

from torchcaps.layers import ReceptiveField, receptive_field

from .carriers import Carriers, carriers, carriers_obstacle, carriers_on_image
from .choose_levels import ChosenLevels, choose_levels
from .contribution import Contributions, contribution_map, contribution_obstacle, contributions
from .dictionary import ClassTrees, Dictionary, KeyCollector, Keys, count_trees
from .evenness import Evenness, distance_from_even, measure_evenness, say_needless
from .explanation import FEW_IMAGES, Explanation, Source, Usual, rank_in_words
from .on_runs.analyse import Analysis, analyse, analyse_run, collect_keys, count_hits, some_images
from .on_runs.choose_levels import choose_levels_of_run
from .on_runs.explain import Explainer
from .perturb import OFFSETS, perturb_capsule
from .places import (
    CapsuleMap,
    capsule_maps,
    contribution_maps,
    evidence_on_image,
    fully_connected,
    through_layers,
)
from .quantize import (
    Levels,
    check_levels,
    evened,
    quantizable_routings,
    quantization_indices,
    quantize,
    quantized,
    say_rounded_up,
)
from .regions import Regions, find_regions, weights_of_levels
from .saliency import GridShape, map_peaks, place_heat, place_map, saliency_map, upsample_map
from .silence import Silenced, silence_carriers
from .tree import Edge, Node, ParseTree, parse_tree
from .typicality import TreeModel, learn_trees, roc_auc, share_below

__all__ = [
    "FEW_IMAGES",
    "OFFSETS",
    "Analysis",
    "CapsuleMap",
    "Carriers",
    "ChosenLevels",
    "ClassTrees",
    "Contributions",
    "Dictionary",
    "Edge",
    "Evenness",
    "Explainer",
    "Explanation",
    "GridShape",
    "KeyCollector",
    "Keys",
    "Levels",
    "Node",
    "ParseTree",
    "ReceptiveField",
    "Regions",
    "Silenced",
    "Source",
    "TreeModel",
    "Usual",
    "analyse",
    "analyse_run",
    "capsule_maps",
    "carriers",
    "carriers_obstacle",
    "carriers_on_image",
    "check_levels",
    "choose_levels",
    "choose_levels_of_run",
    "collect_keys",
    "contribution_map",
    "contribution_maps",
    "contribution_obstacle",
    "contributions",
    "count_hits",
    "count_trees",
    "distance_from_even",
    "evened",
    "evidence_on_image",
    "find_regions",
    "fully_connected",
    "learn_trees",
    "map_peaks",
    "measure_evenness",
    "parse_tree",
    "perturb_capsule",
    "place_heat",
    "place_map",
    "quantizable_routings",
    "quantization_indices",
    "quantize",
    "quantized",
    "rank_in_words",
    "receptive_field",
    "roc_auc",
    "saliency_map",
    "say_needless",
    "say_rounded_up",
    "share_below",
    "silence_carriers",
    "some_images",
    "through_layers",
    "upsample_map",
    "weights_of_levels",
]
