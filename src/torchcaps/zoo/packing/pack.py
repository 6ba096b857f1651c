"""A trained run as a pretrained network: small weights, recipe, result, checksums and a card."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from torchcaps.core import METRICS, Plain, UserError, as_plain
from torchcaps.data import FOLDER_PREFIX, find_info
from torchcaps.inspection import count_parameters
from torchcaps.storage import checksum_of, load_weights, read_json, save_weights, write_json, write_text
from torchcaps.train import Run, evaluate_run, load_run, provenance, recipe_as_json
from torchcaps.train.run import TRAINED, read_result, write_recipe

from ..entry import ENTRY, PACKAGED, WEIGHTS, Entry, preparation_of
from ..measured import halved, measure_rounding, read_evidence
from .card import CARD, SUITE_FILES, describe_entry
from .without_paths import recipe_without_paths, without_paths

RESULT = "result.json"
# what was measured after training: by applications, which need it again, and by suites
_BESIDE = ("matching.json", "calibration.json", *SUITE_FILES)


@dataclass(frozen=True, kw_only=True)
class Packing:
    """How a run is packed.

    Attributes:
        half: Store floating point weights as float16, half the size; they are computed with in float32.
        results: A result file with rows over seeds, and `setting`, which of them are of this network.
        licence: Of the data, where they are a folder that no dataset describes.
        data_note: In a sentence, how the data differ from those that their publisher offers.
        data: Where the test images are now, where that is not what the recipe says.
        data_dir: Folder of the datasets.
    """

    half: bool = False
    results: Path | None = None
    setting: str = ""
    licence: str = ""
    data_note: str = ""
    data: str | None = None
    data_dir: Path | None = None


@dataclass(frozen=True)
class _Content:
    """The files of a network beside weights and recipe, as plain data without paths."""

    result: Plain
    beside: dict[str, Plain]


def pack_run(run_folder: Path, name: str, packing: Packing | None = None, *, out: Path = PACKAGED) -> Entry:
    """Write the run in `run_folder` as the pretrained network `name` below `out`.

    No path of this machine is written: a folder of data gets the part of `name` behind the model.

    Args:
        run_folder: A finished run. Without a `result.json`, as shrinking leaves it, it is tested now.
        name: `<model>.<what it was trained on>`.
        packing: How; as it is, where nothing is said.
        out: Folder of pretrained networks.
    """
    packing = packing or Packing()
    run, folder = load_run(run_folder), out / name
    trained_on = _trained_on(run, name)
    if (folder / ENTRY).is_file():
        raise UserError(f"{folder} already holds a pretrained network; remove it first")
    entry = _described(run, name, packing)
    content = _content(run, trained_on, packing)
    entry = replace(
        entry,
        metrics=_test_metrics(run, content.result),
        trained_in=str(content.result.get("precision", "32")),
        rounding=measure_rounding(run, packing.data, packing.data_dir) if packing.half else None,
    )
    _write(run, folder, content, entry)
    kept = [WEIGHTS, "recipe.json", RESULT, "metrics.jsonl", *(["data.json"] if run.card else [])]
    entry = replace(
        entry,
        bytes=(folder / WEIGHTS).stat().st_size,
        sha256={file: checksum_of(folder / file) for file in (*kept, *content.beside)},
    )
    write_text(folder / CARD, describe_entry(entry, folder))
    write_json(folder / ENTRY, as_plain(entry))
    return entry


def _trained_on(run: Run, name: str) -> str:
    model = str(run.recipe.model["name"])
    trained_on = name.removeprefix(f"{model}.")
    if trained_on in ("", name) or Path(name).name != name:
        raise UserError(f"a pretrained network is named after its model, {model}.SOMETHING, got {name!r}")
    return trained_on


def _described(run: Run, name: str, packing: Packing) -> Entry:
    model = str(run.recipe.model["name"])
    if bool(packing.setting) != (packing.results is not None):
        raise UserError("a result file needs the name of its setting, and a setting its result file")
    recipe = recipe_without_paths(run.recipe, name.removeprefix(f"{model}."))
    return Entry(
        name=name,
        task=run.task.name,
        model=model,
        parameters=count_parameters(run.model),
        data=recipe.data.name,
        licence=_licence(recipe.data.name, packing.licence),
        data_note=packing.data_note,
        metrics={},
        seed=recipe.seed,
        evidence=None if packing.results is None else read_evidence(packing.results, packing.setting, model),
        prepare=preparation_of(recipe.data.name),
        bytes=0,
        sha256={},
    )


def _licence(data: str, given: str) -> str:
    if given:
        return given
    if data.startswith(FOLDER_PREFIX):
        raise UserError("say with --licence under which licence the data in the folder are")
    return find_info(data).licence


def _content(run: Run, trained_on: str, packing: Packing) -> _Content:
    is_tested = (run.folder / RESULT).is_file()
    result = read_result(run.folder, "metrics") if is_tested else _tested(run, packing)
    recipe = recipe_as_json(recipe_without_paths(run.recipe, trained_on))
    beside = {file: read_json(run.folder / file) for file in _BESIDE if (run.folder / file).is_file()}
    for file in SUITE_FILES.keys() & beside.keys():
        SUITE_FILES[file](beside[file])  # a damaged one is an error before anything is written
    return _Content(
        {**without_paths(result, trained_on), "recipe": recipe},
        {file: without_paths(values, trained_on) for file, values in beside.items()},
    )


def _tested(run: Run, packing: Packing) -> Plain:
    """The result of a run that has none of its own: where its network was trained, if that is known."""
    found = evaluate_run(run, data_name=packing.data, data_dir=packing.data_dir)
    metrics = {f"test_{key}": found[key] for key in ("loss", *run.task.metric_names)}
    if not (run.folder / TRAINED).is_file():
        return {"metrics": metrics, "seed": run.recipe.seed, **provenance(run.device)}
    trained = read_result(run.folder, "metrics", file=TRAINED)
    parameters = count_parameters(run.model)
    return {**trained, "metrics": {**trained["metrics"], **metrics}, "parameters": parameters}


def _test_metrics(run: Run, result: Plain) -> dict[str, float]:
    """The metrics of the task, the leading one first, and the loss."""
    keys = [f"test_{name}" for name in (*run.task.metric_names, "loss") if name in METRICS]
    try:
        return {key: float(result["metrics"][key]) for key in keys if key in result["metrics"]}
    except (TypeError, ValueError) as error:
        raise UserError(
            f"{run.folder / RESULT} is damaged (its metrics are no numbers); delete it to test the run anew"
        ) from error


def _write(run: Run, folder: Path, content: _Content, entry: Entry) -> None:
    state, header = load_weights(run.folder / WEIGHTS)
    state = state if entry.rounding is None else halved(state)
    save_weights(folder / WEIGHTS, state, without_paths(header, entry.trained_on))
    write_recipe(folder, recipe_without_paths(run.recipe, entry.trained_on), run.card)
    write_text(folder / "metrics.jsonl", "")
    for file, values in {RESULT: content.result, **content.beside}.items():
        write_json(folder / file, values)
