"""`torchcaps lung eval` and `torchcaps lung segment`: how good a network is, and what it finds in a scan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..terminal import (
    CountBar,
    Device,
    Json,
    MeasuresFile,
    Quiet,
    RunFolder,
    choose_device,
    found_run,
    print_json,
    print_table,
    writable,
)
from .lung import PreparedFolder

_MOST_PRINTED = 12
_PARTS = {"validation": "val"}  # as other commands call it


def evaluate(
    run: RunFolder,
    prepared: PreparedFolder,
    part: Annotated[str, typer.Option("--part", "--split", help="test, validation or train.")] = "test",
    scans: Annotated[
        Path | None,
        typer.Option("--scans", help="Folder that was prepared: also count false marks in whole scans."),
    ] = None,
    out: MeasuresFile = None,
    device: Device = "auto",
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Dice, IoU, HD95 and volume error of a run, by nodule size and patient, with bootstrap intervals."""
    from torchcaps.apps.lung import choose_scans, evaluate_prepared, evaluate_scans
    from torchcaps.apps.lung.prepare import find_scans
    from torchcaps.storage import write_json
    from torchcaps.train import load_run

    loaded = load_run(run, choose_device(device))
    with CountBar("regions", is_shown=not (quiet or json)) as bar:
        result = evaluate_prepared(loaded, prepared, _PARTS.get(part, part), on_regions=bar.reached)
    if scans is not None:
        patients = choose_scans(find_scans(scans), set(result["by_patient"]), scans)
        with CountBar("patients", is_shown=not (quiet or json)) as bar:
            result["scans"] = evaluate_scans(loaded, patients, on_scan=bar.reached)
    if out is not None:
        write_json(out, result)
    if json:
        print_json(result)
    else:
        _print(result)


def _print(result: dict[str, Any]) -> None:
    from torchcaps.core import counted

    typer.echo(
        f"{result['model']} on {result['part']}: {counted(result['nodules'], 'nodule')} "
        f"({counted(result['regions'], 'region')}) of {counted(result['patients'], 'patient')}, "
        f"{result['missed']} missed; distances in {result['unit']}, "
        f"{result['confidence']:.0%} intervals over patients"
    )
    groups = {"all": result["all"], **result["by_size"]}
    print_table([_row(name, measures, result["unit"]) for name, measures in groups.items()])
    typer.echo(f"Dice of single regions {_interval(result['region_dice'], 3)}")
    if "scans" in result:
        found = result["scans"]
        typer.echo(
            f"{found['scans']} whole scans: {found['found']} of {found['nodules']} nodules found, "
            f"{_interval(found['false_marks'], 1)} false marks a scan"
        )
        for name, reason in found["problems"].items():
            typer.echo(f"{name} was left out: {reason}", err=True)


def _row(name: str, measures: dict[str, Any], unit: str) -> dict[str, Any]:
    return {
        "nodules of": name,
        "count": measures["nodules"],
        "Dice": _interval(measures["dice"], 3),
        "IoU": _interval(measures["iou"], 3),
        f"HD95 ({unit})": _interval(measures["hd95"], 2),
        "volume error": _interval(measures["volume_error"], 2),
    }


def _interval(mean: dict[str, Any], digits: int) -> str:
    if mean["mean"] is None:
        return "none"
    ends = "" if mean["low"] is None else f" [{mean['low']:.{digits}f}, {mean['high']:.{digits}f}]"
    return f"{mean['mean']:.{digits}f}{ends}"


def segment(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SERIES|VOLUME|IMAGE", help="Folder of a DICOM series, NIfTI file, or picture of a slice."
        ),
    ],
    run: Annotated[
        Path,
        typer.Option(
            "--run",
            help="Folder that torchcaps lung train wrote, or a name from `torchcaps weights list`.",
            callback=found_run,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", file_okay=False, help="Folder for masks, table, pictures and page.", callback=writable
        ),
    ],
    series: Annotated[
        str | None, typer.Option("--series", help="UID of a DICOM series among several, or largest.")
    ] = None,
    device: Device = "auto",
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Find nodules in a scan: NIfTI, DICOM-SEG, CSV, pictures and one page. Not a medical device."""
    from torchcaps.apps.lung import require_scan, segment_scan
    from torchcaps.train import load_run

    require_scan(source)
    loaded = load_run(run, choose_device(device))
    with CountBar("slices", is_shown=not (quiet or json)) as bar:
        result = segment_scan(loaded, source, out, series=series, on_slices=bar.reached)
    if json:
        print_json(result)
        return
    _print_nodules(result)


def _print_nodules(result: dict[str, Any]) -> None:
    from torchcaps.core import counted

    typer.echo(f"{counted(len(result['nodules']), 'possible nodule')} in {result['source']}")
    if result["nodules"]:
        names = ("nodule", "slice", "diameter_mm", "volume_mm3", "mean_probability")
        print_table([{name: row[name] for name in names} for row in result["nodules"][:_MOST_PRINTED]])
    if len(result["nodules"]) > _MOST_PRINTED:
        typer.echo(f"and {len(result['nodules']) - _MOST_PRINTED} smaller ones, listed in nodules.csv")
    for row in result["carriers"]:
        typer.echo(
            f"nodule {row['nodule']}: without the strongest {row['capsules']} capsules of the deepest level "
            f"its activation falls by {row['fall']:z.3f} of {row['before']:.3f}, without as many random ones "
            f"by {row['random_fall']:z.3f}"
        )
    for note in result["notes"]:
        typer.echo(note, err=True)
    typer.echo("".join(f"  {file}\n" for file in result["files"]) + result["notice"])
