"""The runs behind the table of lung nodules: drawn patients, and real slices with one patient left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from torchcaps.apps.lung.phantom import draw_cuts, draw_empty_cuts, patient_name
from torchcaps.apps.lung.prepare import Found, find_patients, fold_name, prepare, share_name
from torchcaps.core import MissingDataError
from torchcaps.data import resolve_data_dir
from torchcaps.inspection import count_parameters
from torchcaps.models import build_model
from torchcaps.train import Run, load_run

from ..plan import Changes, Experiment, Job, Outcome, Setting, register
from ..records import Budget
from .claims import CHAPTER, CLAIMS, COSTS, MODELS, SHARES, SLICES, TABLE, setting_name
from .figure import draw_figure
from .measure import dice_by_patient, measure_costs, summarise_dice

_PATIENTS: dict[Budget, int] = {"smoke": 3, "quick": 240, "full": 500}
_EPOCHS = {"quick": 12, "full": 30}  # with all patients; with fewer the steps stay the same
_METRICS = ("test_dice", "region_dice", "region_dice_low", "region_dice_high", "missed_share")
_COSTS = ("gpu_ms_1", "cpu_ms_1", "step_ms", "gpu_memory_gb")
TINY = {"model": {"name": "unet_tiny_test", "image_size": 32}, "batch_size": 1, "epochs": 1}
on_nodules = partial(Experiment, chapter=CHAPTER, data=(), seeds=3)


def learn_phantom(patients: Mapping[Budget, int], job: Job) -> None:
    """Train on regions of drawn patients and measure the Dice of the test patients.

    The regions lie beside the runs, in `data/`: they are drawn once for all settings.
    """
    prepare_phantom(job.folder.parent / "data", patients[job.run.budget])
    _, outcome = learn_prepared(job)
    job.leave_result(outcome)


def prepare_phantom(store: Path, patients: int, negatives: float = 0.0) -> Path:
    """A folder with regions of drawn patients: `negatives` without a nodule for each that shows one."""
    place = store / _phantom_folder(patients, negatives)
    drawn = {patient_name(number): partial(_draw, number, 3, negatives) for number in range(patients)}
    prepare(drawn, place, negatives=negatives)
    return place


def phantom_data(patients: int, negatives: float = 0.0, *, share: float = 1.0) -> str:
    """The name of the dataset that `prepare_phantom` writes, with a share of its training patients."""
    return f"folder:{_phantom_folder(patients, negatives)}/splits/{share_name(share)}"


def _phantom_folder(patients: int, negatives: float) -> str:
    return f"phantom-{patients}" + (f"-empty-{negatives:g}" if negatives else "")


def learn_prepared(job: Job) -> tuple[Run, Outcome]:
    """The network of a run, trained on prepared regions, and its Dice on the test patients."""
    store = job.folder.parent / "data"
    split = store / job.run.recipe.data.name.removeprefix("folder:")
    network, trained = job.with_data(store).train_network()
    dice = dice_by_patient(network, split.parent.parent, split, store)
    return network, trained.with_metrics(summarise_dice(dice))


def _draw(number: int, slices: int = 3, negatives: float = 0.0) -> Found:
    cuts = draw_cuts(number, seed=0, slices=slices)
    empty = draw_empty_cuts(number, 0, round(negatives * len(cuts))) if negatives else []
    return Found([*cuts, *empty])


def leave_patients_out(job: Job) -> None:
    """Train once for each patient, who is tested, and put the test regions of all together."""
    run, store = job.run, job.folder.parent / "data"
    patients = _prepare_slices(run.budget, store / "slices", job.data_dir)
    by_patient: dict[str, list[float]] = {}
    results = []
    for patient in patients:
        split = store / "slices" / "splits" / fold_name(patient)
        data = replace(run.recipe.data, name=f"folder:slices/splits/{split.name}")
        place = job.folder / split.name
        results.append(job.with_data(store).train(replace(run.recipe, data=data), place))
        by_patient |= dice_by_patient(load_run(place, job.device), store / "slices", split, store)
    outcome = replace(
        results[-1],
        metrics={"epochs": run.recipe.epochs, **summarise_dice(by_patient)},
        seconds=sum(result.seconds for result in results),
    )
    patients_dice = {name: sum(some) / len(some) for name, some in sorted(by_patient.items())}
    job.leave_result(replace(outcome, extra={"patient_dice": patients_dice}))


def measure_network(job: Job) -> None:
    """Measure an untrained network."""
    recipe = job.run.recipe
    network = build_model(recipe.model)
    parameters = count_parameters(network)
    metrics = measure_costs(network, job.device, batch=recipe.batch_size)
    outcome = Outcome(metrics=metrics, parameters=parameters, seconds=0.0, precision="32")
    job.leave_result(outcome)


def _prepare_slices(budget: Budget, place: Path, data_dir: Path | None) -> tuple[str, ...]:
    """The names of the patients; a smoke run draws them."""
    if budget == "smoke":
        drawn = {f"p{number}": partial(_draw, number, slices=1) for number in range(3)}
        return prepare(drawn, place).patients
    source = resolve_data_dir(data_dir) / "lidc_slices"
    if not source.is_dir():
        raise MissingDataError(f"no slices at {source}; they are NAME.png with NAME_mask.png")
    return prepare(find_patients(source), place).patients


def _budget(budget: Budget, share: float) -> Changes:
    name = phantom_data(_PATIENTS[budget], share=share)
    return {"data.name": name, "epochs": round(_EPOCHS[budget] / share)}


def _setting(model: str, share: float) -> Setting:
    return Setting(
        name=setting_name(model, share),
        network=MODELS[model],
        variant=f"{100 * share:g} % of the patients",
        recipe=f"lung/{model}",
        changes=_budget("full", share),
        budgets={
            "smoke": {**TINY, "data.name": phantom_data(_PATIENTS["smoke"], share=share)},
            "quick": _budget("quick", share),
        },
    )


register(
    on_nodules(
        label=TABLE,
        title="Dice of SegCaps and U-Nets with all, half and a tenth of the training patients",
        gpu_minutes=180,
        metrics=_METRICS,
        settings=tuple(_setting(model, share) for model in MODELS for share in SHARES),
        perform=partial(learn_phantom, _PATIENTS),
        draw=draw_figure,
        claims=CLAIMS,
        deviations=(
            "Drawn patients, whose nodules four drawn readers outline, instead of LIDC-IDRI: figures cannot "
            "be compared, claims about their order can.",
            "The thesis's Dice on LIDC-IDRI with 100, 50 and 10 % of the samples: U-Net 5 .81, .79, .78; "
            "U-Net 4 .74, .71, .68; U-Net 3 .72, .69, .66; SegCaps .79, .77, .76.",
            "Splits and shares are by patient. Every run takes the same number of steps, whatever the share.",
            "The thesis states neither learning rates nor epochs; U-Nets train with 3e-4, SegCaps with 1e-3.",
            "Region Dice is the mean over test regions, with an interval over patients; test Dice pools all "
            "pixels. The thesis does not say which it prints.",
        ),
    )
)
register(
    on_nodules(
        label=SLICES,
        title="Dice of SegCaps and U-Nets on 108 real slices, with each of 8 patients left out once",
        gpu_minutes=30,
        metrics=tuple(metric for metric in _METRICS if metric != "test_dice"),
        budgets={"smoke": TINY, "quick": {"epochs": 100}},
        settings=tuple(
            Setting(
                name=MODELS[model],
                recipe=f"lung/{model}",
                changes={"epochs": 300, "data.name": "folder:slices"},
            )
            for model in MODELS
        ),
        perform=leave_patients_out,
        deviations=(
            "Not in the thesis. 8 patients and 18 nodules of LIDC-IDRI: a demonstration, not a benchmark.",
            "The slices come as 8-bit pictures of the lung alone, each stretched to its own range.",
            "Each patient tests once, another one validates, and six train; the Dice is over all regions.",
        ),
    )
)
register(
    on_nodules(
        label=COSTS,
        title="Time and memory of SegCaps and U-Nets for regions of 128x128 pixels",
        gpu_minutes=1,
        seeds=1,
        at_once=1,  # runs are timed
        metrics=_COSTS,
        budgets={"smoke": TINY},
        settings=tuple(Setting(name=title, recipe=f"lung/{model}") for model, title in MODELS.items()),
        perform=measure_network,
        deviations=(
            "Not in the thesis. Untrained networks and random regions: one at inference, 16 in a step.",
            "GPU memory is the most that PyTorch's allocator handed out in a training step.",
        ),
    )
)
