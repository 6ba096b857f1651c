"""Speed of two source trees on one machine: `before_after.py OLD NEW FILE [SUITE...] [--graphs]`.

OLD and NEW are checkouts of this project, PATH or, without Git, PATH@COMMIT. Each suite is measured in both,
in turn and twice, in processes of their own, so that a difference is not one between machines or hours. Rows
under torch.compile, epochs and scaling curves are left out; with --graphs all but CUDA graphs, in which the
host has no part. FILE gets the rows of all measurements. The rows that both
trees have are printed with the change; the exit status is the number of those where NEW is slower than OLD by
more than the spread.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path

SUITES = ("train", "routing")
GRAPHS = "--graphs"


def main(old, new, file, suites, *only):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder, "rows.json")
        for turn in range(2):
            for suite in suites:
                for side, tree in (("old", old), ("new", new)):
                    command = [sys.executable, __file__, "--measure", suite, str(part), *only]
                    subprocess.run(command, env={**os.environ, **environment_of(tree)}, check=True)
                    rows += [{**row, "side": side, "turn": turn} for row in json.loads(part.read_text())]
                    Path(file).write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    lines = compare(rows)
    slower = sum(line.startswith("slower") for line in lines)
    print(*lines, f"{slower} of {len(lines)} rows slower by more than the spread", sep="\n")
    return slower


def environment_of(tree):
    """The variables that make a checkout the package that is imported, and name its commit."""
    folder, _, commit = tree.partition("@")
    path = os.pathsep.join(filter(None, [str(Path(folder, "src").resolve()), os.environ.get("PYTHONPATH")]))
    return {"PYTHONPATH": path} | ({"TORCHCAPS_COMMIT": commit} if commit else {})


def measure(suite, file, *only):
    """In a process of its own: the rows of one suite of the package on the search path."""
    import torch

    package = next(name for name in ("bench", "experiments.bench") if is_package(f"torchcaps.{name}"))
    run = importlib.import_module(f"torchcaps.{package}.run")
    chosen = run.SUITES[suite]
    is_wanted = is_short_graph if only else is_short
    run.SUITES[suite] = lambda *args, **settings: filter(is_wanted, chosen(*args, **settings))
    settings = {"compiled": False, "curves": {}} if suite == "routing" else {}
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    results = run.run_bench(suite, device, quick=True, **settings)
    Path(file).write_text(json.dumps(results["rows"]))


def is_package(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def is_short(measurement):
    return "compile" not in measurement.backend and "epoch" not in measurement.case


def is_short_graph(measurement):
    return is_short(measurement) and measurement.backend.endswith("+graph")


def compare(rows):
    """A line for each row that both trees have: the faster of each tree's turns, and the widest spread."""
    sides = {"old": {}, "new": {}}
    for row in rows:
        if row["ms"] is not None:
            key = row["suite"], row["case"], row["backend"], row["batch"]
            sides[row["side"]].setdefault(key, []).append(row)
    return [line_of(key, sides["old"][key], sides["new"][key]) for key in sides["new"] if key in sides["old"]]


def line_of(key, old, new):
    before, after = (min(row["ms"] for row in found) for found in (old, new))
    turns = [[row["ms"] for row in found] for found in (old, new)]
    between = max(max(times) / min(times) - 1 for times in turns)
    spread = max(between, *(row["spread"] for row in old + new))
    change = after / before - 1
    verdict = "slower" if change > spread else "faster" if change < -spread else "equal "
    times = f"{before:.4g} -> {after:.4g} ms"
    return f"{verdict} {change:+7.1%} (spread {spread:.1%}) {times}  {', '.join(map(str, key))}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(*sys.argv[2:])
    else:
        parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
        for name in ("old", "new", "file"):
            parser.add_argument(name)
        parser.add_argument("suites", nargs="*", default=SUITES)
        parser.add_argument(GRAPHS, action="store_true")
        given = parser.parse_intermixed_args()
        sys.exit(main(given.old, given.new, given.file, given.suites, *[GRAPHS] * given.graphs))
