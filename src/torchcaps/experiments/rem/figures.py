"""Chapter 6, REM: figures of the DR-CapsNets that were trained for the table on MNIST."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from torchcaps.parse import Keys, analyse, collect_keys
from torchcaps.prune import count_sparsity

from ..plan import Claim, register
from ..records import Details, Rows
from . import figure_claims
from .drawing import chart_distributions, chart_keys, chart_levels, chart_training
from .reuse import SHARED_RUNS, Look, Metrics, Trained, look_again, reused
from .setting import TreeSetting
from .tables import MNIST_TABLE, on_rem

LEVELS = (2, 3, 4, 6, 8, 11, 16, 21, 32, 64)


def _keys_per_class(trained: Trained) -> tuple[Metrics, Details]:
    found = analyse(trained.run.model, trained.data, trained.pipeline, levels=11)
    rows = found.as_json()["classes"]
    details = Details(
        series={"keys": np.array([row["keys"] for row in rows])},
        names=tuple(row["class"] for row in rows),
    )
    return {"keys": found.dictionary.num_keys, "entropy": found.dictionary.entropy}, details


def _levels(trained: Trained) -> tuple[Metrics, Details]:
    rows = [
        analyse(trained.run.model, trained.data, trained.pipeline, levels=levels).as_json()
        for levels in LEVELS
    ]
    names = ("quantized_accuracy", "entropy")
    series = {name: np.array([row[name] for row in rows]) for name in names}
    at_eleven = rows[LEVELS.index(11)]
    return (
        {name: at_eleven[name] for name in names},
        Details(series={"levels": np.array(LEVELS), **series}),
    )


def _distribution(trained: Trained) -> tuple[Metrics, Details]:
    """The share of couplings to the predicted class at each level, over all children and images."""
    network = trained.at_epoch(trained.setting.epoch)
    keys = collect_keys(network.model, trained.data, trained.pipeline, levels=11)
    shares = np.array([_shares(keys, number) for number in range(keys.num_classes)])
    whole = np.bincount(keys.indices.ravel(), minlength=11) / keys.indices.size
    metrics: Metrics = {"weak_share": float(whole[:1].sum()), "strong_share": float(whole[6:].sum())}
    levels = np.array([level / 10 for level in range(11)])
    return metrics, Details(series={"levels": levels, "shares": shares})


def _shares(keys: Keys, number: int) -> list[float]:
    of_class = keys.indices[keys.predicted == number]
    return (np.bincount(of_class.ravel(), minlength=11) / max(of_class.size, 1)).round(6).tolist()


def _one_epoch(trained: Trained) -> tuple[Metrics, Details]:
    network = trained.at_epoch(trained.setting.epoch)
    found = analyse(network.model, trained.data, trained.pipeline, levels=11).as_json()
    return {key: found[key] for key in ("quantized_accuracy", "entropy", "keys")}, Details()


def _along_training(trained: Trained) -> tuple[Metrics, Details]:
    """Sparsity, accuracy and entropy after each epoch that the run kept."""
    rows = []
    for epoch in trained.run.recipe.keep_epochs:
        if (trained.run.folder / f"epoch-{epoch}.safetensors").is_file():
            network = trained.at_epoch(epoch).model
            found = analyse(network, trained.data, trained.pipeline, levels=11).as_json()
            rows.append({**found, "epoch": epoch, "sparsity": count_sparsity(network)["sparsity"]})
    names = ("sparsity", "quantized_accuracy", "entropy")
    series = {name: np.array([row[name] for row in rows]) for name in ("epoch", *names)}
    return {name: rows[-1][name] for name in names}, Details(series=series)


_DR_Q, _DR_REM = (setting.name for setting in MNIST_TABLE.settings[:2])


def _setting(
    name: str, of: str, thesis: Mapping[str, float] | None = None, *, epoch: int | None = None
) -> TreeSetting:
    return replace(reused((MNIST_TABLE,), of), name=name, thesis=thesis or {}, epoch=epoch)


def _figure(
    label: str,
    title: str,
    look: Look,
    *,
    settings: tuple[TreeSetting, ...],
    metrics: tuple[str, ...],
    claim: Claim,
    draw: Callable[[Rows], bytes] | None = None,
) -> None:
    register(
        on_rem(
            label=label,
            title=title,
            data=("mnist",),
            gpu_minutes=0,  # on top of the table's
            at_once=1,  # they share the table's runs
            metrics=metrics,
            perform=look_again(look, (MNIST_TABLE,)),
            settings=settings,
            draw=draw,
            claims=(claim,),
            deviations=(SHARED_RUNS.format(MNIST_TABLE.label),),
        )
    )


_BOTH = (_setting("DR-CapsNet+Q", _DR_Q), _setting("DR-CapsNet+REM", _DR_REM))
_figure(
    "fig:mnist-dictionary-test",
    "Number of parse trees of each class on MNIST",
    _keys_per_class,
    settings=_BOTH,
    metrics=("keys", "entropy"),
    draw=chart_keys,
    claim=Claim("Every class has fewer parse trees with REM.", figure_claims.fewer_trees_in_every_class),
)
_figure(
    "fig:quantization levels",
    "Accuracy and entropy against the number of quantization levels",
    _levels,
    settings=(
        _setting("DR-CapsNet+Q", _DR_Q, {"quantized_accuracy": 99.47, "entropy": 9.32}),
        _setting("DR-CapsNet+REM", _DR_REM, {"quantized_accuracy": 99.57, "entropy": 4.40}),
    ),
    metrics=("quantized_accuracy", "entropy"),
    draw=chart_levels,
    claim=Claim(
        "With 11 levels the accuracy is about the best, by our rule within a tenth of a point.",
        figure_claims.eleven_levels_suffice,
    ),
)
_figure(
    "fig:capsnetq_vscapsnetrem",
    "Distribution of the couplings to the predicted class",
    _distribution,
    settings=_BOTH,
    metrics=("weak_share", "strong_share"),
    draw=chart_distributions,
    claim=Claim(
        "With REM couplings are sparser: more of them, by our rule by a twentieth, are rounded to zero.",
        figure_claims.compare("fig:capsnetq_vscapsnetrem", "weak_share", "DR-CapsNet+Q", "DR-CapsNet+REM"),
    ),
)
_EPOCHS = (
    _setting("DR-CapsNet+Q after one epoch", _DR_Q, {"quantized_accuracy": 97.53, "entropy": 1.83}, epoch=1),
    _setting("DR-CapsNet+Q at its best", _DR_Q, {"quantized_accuracy": 99.55, "entropy": 9.41}),
)
_figure(
    "tab:acc_nopruning_epochs",
    "Accuracy and entropy after one epoch and at the best",
    _one_epoch,
    settings=_EPOCHS,
    metrics=("quantized_accuracy", "entropy", "keys"),
    claim=Claim(
        "After one epoch the entropy is low, by our rule below six tenths of that at the best.",
        figure_claims.is_low("tab:acc_nopruning_epochs", *(setting.name for setting in _EPOCHS)),
    ),
)
_figure(
    "fig:cij_nopruning_all",
    "Distribution of the couplings after one epoch and at the best",
    _distribution,
    settings=tuple(replace(setting, thesis={}) for setting in _EPOCHS),
    metrics=("weak_share", "strong_share"),
    draw=chart_distributions,
    claim=Claim(
        "After one epoch nearly all couplings, by our rule 95 %, are an equal share; fewer are strong than "
        "at the best.",
        figure_claims.even_at_first("fig:cij_nopruning_all", *(setting.name for setting in _EPOCHS)),
    ),
)
_figure(
    "fig:acc_vs_pp",
    "Accuracy and entropy against sparsity along the training of DR-CapsNet+REM",
    _along_training,
    settings=(_setting("DR-CapsNet+REM", _DR_REM, {"quantized_accuracy": 99.60, "entropy": 4.31}),),
    metrics=("quantized_accuracy", "entropy", "sparsity"),
    draw=chart_training,
    claim=Claim(
        "Entropy is low at first, because routing does not discriminate yet, and grows with the accuracy; "
        "it ends low, by our rule below six tenths of that without REM.",
        figure_claims.entropy_grows_in_training,
    ),
)
