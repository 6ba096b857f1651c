"""`torchcaps lung`: nodules in CT, from DICOM to a trained network."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from .. import train as training
from ..terminal import (
    Changes,
    CountBar,
    DataDir,
    Device,
    Json,
    Precision,
    Quiet,
    RecipeCommand,
    Resume,
    print_json,
    writable,
)

app = typer.Typer(
    help="Lung nodules in CT: draw, prepare, train. Research software, not a medical device.",
    no_args_is_help=True,
)

PreparedFolder = Annotated[
    Path, typer.Argument(metavar="PREPARED", help="Folder that torchcaps lung prepare wrote.")
]


@app.command("phantom")
def phantom(
    out: Annotated[
        Path,
        typer.Argument(metavar="OUT", file_okay=False, help="Folder of the patients.", callback=writable),
    ],
    patients: Annotated[int, typer.Option("--patients", min=1, help="How many to draw.")] = 10,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Another seed draws other patients.")] = 0,
    size: Annotated[int, typer.Option("--size", help="Pixels along each side of a slice.")] = 512,
    slices: Annotated[int, typer.Option("--slices", help="Slices of each patient, 2.5 mm apart.")] = 60,
    quiet: Quiet = False,
) -> None:
    """Draw chests with nodules, as DICOM series with the XML of four readers."""
    from torchcaps.apps.lung.phantom import Protocol, write_phantom
    from torchcaps.core import counted

    protocol = Protocol(size=size, slices=slices)
    with CountBar("patients", is_shown=not quiet) as bar:
        write_phantom(out, patients, seed=seed, protocol=protocol, on_patient=bar.reached)
    next_step = f"torchcaps lung prepare {quote(str(out))} --out prepared"
    typer.echo(f"{counted(patients, 'patient')} in {out}; next: {next_step}")


@app.command("prepare")
def prepare(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="A folder for each patient with DICOM and XML, as LIDC-IDRI has them; or NAME.nii.gz with "
            "NAME_mask.nii.gz; or NAME.png with NAME_mask.png.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", file_okay=False, help="Folder for regions, splits, manifest and report.")
    ],
    negatives: Annotated[
        float,
        typer.Option(
            "--negatives",
            min=0,
            help="How many regions without a nodule for each one with a nodule; they train.",
        ),
    ] = 0.0,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Cut 128x128 regions around nodules and split them by patient; called again, it goes on."""
    from torchcaps.apps.lung.prepare import REPORT, find_patients, prepare, require_apart
    from torchcaps.core import counted

    require_apart(source, out)
    with CountBar("patients", is_shown=not (quiet or json)) as bar:
        found = prepare(
            find_patients(source, negatives=negatives),
            out,
            negatives=negatives,
            on_patient=lambda _, *counts: bar.reached(*counts),
        )
    if json:
        print_json({"patients": len(found.patients), "regions": found.regions, "problems": found.problems})
        return
    next_step = f"torchcaps lung train {quote(str(out))}"
    regions, patients = counted(found.regions, "region"), counted(len(found.patients), "patient")
    typer.echo(f"{regions} of {patients} in {out}; next: {next_step}")
    if found.problems:
        unused = counted(len(found.problems), "patient")
        typer.echo(f"{unused} could not be used; {out / REPORT} says why", err=True)


@app.command("train", cls=RecipeCommand)
def train(
    prepared: PreparedFolder,
    model: Annotated[
        str, typer.Option("--model", help="segcaps_r3, segcaps_r1, unet_3, unet_4 or unet_5.")
    ] = "segcaps_r3",
    share: Annotated[
        float, typer.Option("--share", help="Share of the training patients: 1, 0.5 or 0.1.")
    ] = 1.0,
    leave_out: Annotated[
        str | None,
        typer.Option("--leave-out", help="Test on this patient alone, where there are at most 20."),
    ] = None,
    set_: Changes = None,
    out: Annotated[
        Path | None, typer.Option("--out", file_okay=False, help="Run folder; default runs/lung-MODEL.")
    ] = None,
    resume: Resume = False,
    device: Device = "auto",
    precision: Precision = "32",
    data_dir: DataDir = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train a network of the lung recipes on a prepared folder."""
    from torchcaps.apps.lung.prepare import dataset_name, fold_name, share_name
    from torchcaps.core import UserError

    if leave_out is not None and share != 1:
        raise UserError("--share and --leave-out do not go together: a patient is left out of all patients")
    split = share_name(share) if leave_out is None else fold_name(leave_out)
    training.command(
        recipe=f"lung/{model}",
        set_=set_,
        data=dataset_name(prepared, split),
        out=out or Path("runs") / f"lung-{model}",
        resume=resume,
        device=device,
        devices=1,
        precision=precision,
        data_dir=data_dir,
        tensorboard=False,
        quiet=quiet,
        json=json,
    )
