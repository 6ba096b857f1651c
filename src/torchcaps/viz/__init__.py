"""Drawings from plain arrays, each a matplotlib figure bound to no window, and the page that holds them."""

from .charts.accuracy_entropy import EntropyDot, draw_accuracy_entropy
from .charts.bench import draw_bench
from .charts.coupling_fans import draw_coupling_fans
from .charts.curves import draw_curves
from .charts.distributions import LevelShares, draw_distributions
from .charts.groups import draw_bars, draw_dots
from .charts.lines import LineChart, draw_lines
from .charts.measured import Measured, measure_seeds, with_deviation
from .charts.surprise import draw_surprise
from .confusion import draw_confusion
from .evidence import draw_evidence, heat_colours
from .flight import FlightDrawing, draw_belief, draw_errors, flight_page
from .markup import read_template, to_script
from .pictures import png_uri, to_array, to_colours, to_data_uri, to_pictures
from .reconstructions import draw_pairs, draw_perturbations, draw_reconstructions, draw_side_by_side
from .report import Report
from .saliency import SaliencyPanel, draw_saliency
from .slice_detail import SliceDetail, draw_slice_detail
from .slice_viewer import Finding, SliceView, slice_viewer
from .style import INK_MAP, to_png, to_svg
from .text import drawable_labels
from .tree_levels import LevelTree, Link, Seen, draw_tree_levels
from .trees.figure import draw_tree
from .trees.forest import Forest, draw_forest
from .trees.page import tree_markup
from .true_trees import Branch, TreeOnImage, draw_true_trees

__all__ = [
    "INK_MAP",
    "Branch",
    "EntropyDot",
    "Finding",
    "FlightDrawing",
    "Forest",
    "LevelShares",
    "LevelTree",
    "LineChart",
    "Link",
    "Measured",
    "Report",
    "SaliencyPanel",
    "Seen",
    "SliceDetail",
    "SliceView",
    "TreeOnImage",
    "draw_accuracy_entropy",
    "draw_bars",
    "draw_belief",
    "draw_bench",
    "draw_confusion",
    "draw_coupling_fans",
    "draw_curves",
    "draw_distributions",
    "draw_dots",
    "draw_errors",
    "draw_evidence",
    "draw_forest",
    "draw_lines",
    "draw_pairs",
    "draw_perturbations",
    "draw_reconstructions",
    "draw_saliency",
    "draw_side_by_side",
    "draw_slice_detail",
    "draw_surprise",
    "draw_tree",
    "draw_tree_levels",
    "draw_true_trees",
    "drawable_labels",
    "flight_page",
    "heat_colours",
    "measure_seeds",
    "png_uri",
    "read_template",
    "slice_viewer",
    "to_array",
    "to_colours",
    "to_data_uri",
    "to_pictures",
    "to_png",
    "to_script",
    "to_svg",
    "tree_markup",
    "with_deviation",
]
