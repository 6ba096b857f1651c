"""Parse trees of trained runs: a whole split analysed, the levels chosen, single images explained."""

from .analyse import Analysis, analyse, analyse_run, collect_keys, count_hits, some_images
from .choose_levels import choose_levels_of_run
from .explain import Explainer

__all__ = [
    "Analysis",
    "Explainer",
    "analyse",
    "analyse_run",
    "choose_levels_of_run",
    "collect_keys",
    "count_hits",
    "some_images",
]
