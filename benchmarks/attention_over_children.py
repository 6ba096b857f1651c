"""Couplings over children: `python benchmarks/attention_over_children.py DATA FOLDER RESULTS CHANGE...`.

Self-attention shares each child out among the parents; some ports share each parent out among its children.
Both are trained on DATA, mnist or cifar10, with and without REM, as in the thesis but for the changes, such
as `epochs=60`, and their trees counted as in its tables. Runs that are in FOLDER already are used again. The
rows go to `RESULTS/attention-over-children.json`.
"""

import json
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path

from torch import einsum

from torchcaps.experiments.records import Protocol, RunResult
from torchcaps.experiments.rem.tables import MNIST_TABLE, OTHERS_TABLE
from torchcaps.experiments.results import summarise, write_results
from torchcaps.parse import analyse_run
from torchcaps.routing import ROUTINGS
from torchcaps.routing.api import keep_float32
from torchcaps.routing.self_attention import SelfAttentionRouting, attended_votes
from torchcaps.train import Machine, load_recipe, load_run, train

OF_TABLES = {
    "mnist": (MNIST_TABLE, "Efficient-CapsNet"),
    "cifar10": (OTHERS_TABLE, "CIFAR-10, Efficient-CapsNet, 16 children"),
}
WAYS = {"parents": {}, "children": {"model.routing": "attention_children"}}
METRICS = ("quantized_accuracy", "entropy", "keys", "sparsity")


@keep_float32
def over_children(votes, activations, *, prior):
    agreement = einsum("...iod,...od->...io", votes, votes.sum(-3)) * votes.shape[-1] ** -0.5
    coupling = agreement.softmax(dim=-2) + prior.to(votes.dtype)
    return attended_votes(votes, activations, coupling=coupling)


@ROUTINGS.register("attention_children")
class AttentionOverChildren(SelfAttentionRouting):
    def forward(self, votes, activations):
        return over_children(votes, activations, prior=self.prior)


def main(data, folder, results, *changes):
    rows = []
    table, network = OF_TABLES[data]
    for way in WAYS:
        for kind in ("Q", "REM"):
            made = make(data, Path(folder) / f"{data}-{way}-{kind.lower()}", way, kind, changes)
            setting = f"{network}+{kind}, over {way}"
            print(setting, json.dumps(made["metrics"]), flush=True)
            of_table = next(each for each in table.settings if each.name == f"{network}+{kind}")
            protocol = Protocol(epochs=made["metrics"]["epochs"], images=made["recipe"]["data"]["limit"])
            result = RunResult.from_json(made)
            rows += [
                summarise(
                    [result],
                    setting=setting,
                    metric=metric,
                    thesis=of_table.thesis.get(metric),
                    protocols=[protocol],
                )
                for metric in METRICS
                if metric in made["metrics"]
            ]
    command = " ".join([f"python benchmarks/attention_over_children.py {data} FOLDER results", *changes])
    write_results(Path(results), "attention-over-children", rows, command)


def make(data, folder, way, kind, changes):
    """Train one network, or go back to it, and count its trees."""
    last = ("pruning=null",) if kind == "Q" else ()
    recipe = load_recipe(f"{data}/efficient_capsnet_rem", (*changes, *last), WAYS[way])
    made = train(recipe, folder, Machine(), resume=True)
    found = analyse_run(load_run(folder)).as_json()
    made["metrics"] |= {name: found[name] for name in ("quantized_accuracy", "entropy", "keys")}
    return made


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("data", choices=OF_TABLES)
    for name in ("folder", "results"):
        parser.add_argument(name)
    parser.add_argument("changes", nargs="*")
    given = parser.parse_args()
    main(given.data, given.folder, given.results, *given.changes)
