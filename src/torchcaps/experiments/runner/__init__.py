"""Makes the runs of experiments: in this process, in several, or on a cluster; and exchanges results."""

from .cluster import run_on_cluster
from .exchange import merge_runs, pack_runs
from .make import RunCounts, count_runs, run_missing
from .outdated import outdated_runs, set_aside
from .processes import run_in_processes
from .visit import Visit

__all__ = [
    "RunCounts",
    "Visit",
    "count_runs",
    "merge_runs",
    "outdated_runs",
    "pack_runs",
    "run_in_processes",
    "run_missing",
    "run_on_cluster",
    "set_aside",
]
