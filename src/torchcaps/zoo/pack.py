"""A trained run as a pretrained network: small weights, recipe, result, checksums and a card."""

from __future__ import annotations

from pathlib import Path

import torch

from torchcaps.core.errors import MissingDataError, UserError
from torchcaps.core.fields import as_plain
from torchcaps.core.metric import METRICS, metric_of
from torchcaps.data import DATASETS
from torchcaps.inspection import count_parameters
from torchcaps.storage import load_weights, read_json, save_weights, write_json, write_text
from torchcaps.train import Run, load_run
from torchcaps.train.run import write_recipe

from .entry import ENTRY, PACKAGED, WEIGHTS, Entry, preparation_of
from .store import checksum_of

CARD = "card.md"


def pack_run(run_folder: Path, name: str, *, half: bool = False, out: Path = PACKAGED) -> Entry:
    """Write the run in `run_folder` as the pretrained network `name` below `out`.

    Args:
        run_folder: A finished run, with its `result.json`.
        name: `<model>.<what it was trained on>`.
        half: Store floating point weights as float16, half the size; they are computed with in float32.
        out: Folder of pretrained networks.
    """
    run = load_run(run_folder)
    model = str(run.recipe.model["name"])
    if not name.startswith(f"{model}.") or Path(name).name != name:
        raise UserError(f"a pretrained network is named after its model, {model}.SOMETHING, got {name!r}")
    result_path = run_folder / "result.json"
    if not result_path.is_file():
        raise MissingDataError(f"{run_folder} has no result.json: finish its training first")
    folder = out / name
    if (folder / ENTRY).is_file():
        raise UserError(f"{folder} already holds a pretrained network; remove it first")
    state, header = load_weights(run_folder / WEIGHTS)
    if half:
        state = {key: value.half() if value.dtype == torch.float32 else value for key, value in state.items()}
    save_weights(folder / WEIGHTS, state, header)
    write_recipe(folder, run.recipe, run.card)
    result = read_json(result_path)
    write_json(folder / "result.json", result)
    write_text(folder / "metrics.jsonl", "")
    metrics = {
        key: float(value)
        for key, value in result["metrics"].items()
        if key.startswith("test_") and key.removeprefix("test_") in METRICS
    }
    write_text(folder / CARD, _card(run, name, metrics, result, half=half))
    kept = [WEIGHTS, "recipe.json", "result.json", "metrics.jsonl", *(["data.json"] if run.card else [])]
    entry = Entry(
        name=name,
        model=model,
        data=run.recipe.data.name,
        metrics=metrics,
        seed=run.recipe.seed,
        prepare=preparation_of(run.recipe.data.name),
        bytes=(folder / WEIGHTS).stat().st_size,
        sha256={file: checksum_of(folder / file) for file in kept},
    )
    write_json(folder / ENTRY, as_plain(entry))
    return entry


def _card(run: Run, name: str, metrics: dict[str, float], result: dict[str, object], *, half: bool) -> str:
    data = run.recipe.data.name
    licence = DATASETS[data].licence if data in DATASETS else "that of the images it was trained on"
    found = ", ".join(
        f"{metric_of(key).title} {metric_of(key).format(value)}" for key, value in metrics.items()
    )
    lines = [
        f"# {name}",
        f"`{run.recipe.model['name']}`, {count_parameters(run.model):,} parameters, stored as "
        f"{'float16' if half else 'float32'}.",
        f"- Data: {data}; licence: {licence}.",
        f"- Test images: {found or 'not measured'}, of one run with seed {run.recipe.seed} at commit "
        f"{result.get('commit')}. Tables in `results/` have means over seeds.",
        "- Recipe: `recipe.yaml` beside this card; result: `result.json`.",
        f"- Limits: it knows the classes of {data} alone and names one of them for every image, whatever it "
        "shows. It was tested on images like those it was trained on.",
        "- Cite torchcaps (`CITATION.cff`), the paper of the model (`torchcaps list models`) and the data.",
    ]
    return "\n\n".join(lines[:2]) + "\n\n" + "\n".join(lines[2:]) + "\n"
