"""Options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from torchcaps.parse import Levels
    from torchcaps.train import Machine, Run


def found_run(value: Path) -> Path:
    """The folder behind the name of a pretrained network; other paths stay as they are."""
    from torchcaps.zoo import find_run

    return find_run(value)


def named_data(value: str | None) -> str | None:
    """The name of a dataset; the path of a folder becomes `folder:PATH`, as for `train --data`."""
    from torchcaps.train import name_dataset

    return None if value is None else name_dataset(value)


def writable(value: Path | None) -> Path | None:
    """The place of an output; one where nothing can be written is an error before any work."""
    from torchcaps.core import UserError

    if value is None:
        return None
    above = value.absolute().parents
    if file := next((path for path in above if path.is_file()), None):
        raise UserError(f"{file} is a file, nothing can be written below it; choose another place")
    folder = next(path for path in (value.absolute(), *above) if path.is_dir())
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(f"nothing may be written to {folder}; choose another place")
    return value


A_RUN = "Folder that torchcaps train wrote, or a name from `torchcaps weights list`."
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help=A_RUN, callback=found_run)]
Images = Annotated[
    list[str],
    typer.Argument(
        metavar="IMAGE...",
        help="Image files, folders or patterns of them, or test:17 for an image of the run's data.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress, only the result.")]
DataDir = Annotated[
    Path | None, typer.Option("--data-dir", help="Folder of the datasets; else TORCHCAPS_DATA is used.")
]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")]
Precision = Annotated[
    str,
    typer.Option(
        "--precision", help="32; bf16: convolutions in bfloat16, votes in TF32; or auto, the faster."
    ),
]
RecipeName = Annotated[
    str, typer.Argument(help="Path of a YAML file, or a name from `torchcaps list recipes`.")
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Replace a key: optim.learning_rate=3e-4."),
]
OtherData = Annotated[
    str | None,
    typer.Option(
        "--data",
        help="Another dataset, or a folder of images in one folder per class.",
        callback=named_data,
    ),
]
NewRun = Annotated[
    Path | None, typer.Option("--out", file_okay=False, help="Run folder; default runs/<data>-<recipe>.")
]
MeasuresFile = Annotated[
    Path | None,
    typer.Option("--out", dir_okay=False, help="Also write all measures to this file.", callback=writable),
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the run in --out, if there is one.")]
LevelsOption = Annotated[
    str,
    typer.Option(
        "--levels",
        help="How many levels couplings are rounded to: a number; one for each routed layer, as 11,6; even, "
        "the number nearest to 11 that has an even split among its levels; or auto, the smallest that keeps "
        "the accuracy on the validation images.",
    ),
]


def is_first_process() -> bool:
    """Whether this process speaks for all that train together; torchrun and Fabric number them."""
    return os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0")) == "0"


def choose_device(name: str) -> str:
    """The kind of device to compute on, chosen as for a training."""
    from torchcaps.train import Machine, device_of

    return device_of(Machine(device=name)).type


def choose_machine(
    device: str, precision: str, data_dir: Path | None, *, devices: int = 1, quiet: bool = False
) -> Machine:
    """Where to compute, in a precision that is not "auto"; what auto chose is said on stderr."""
    from torchcaps.train import Machine, device_of, settled

    asked = Machine(device=device, devices=devices, precision=precision, data_dir=data_dir)  # type: ignore[arg-type]
    chosen = settled(asked)
    if precision == "auto" and not quiet and is_first_process():
        reason = "native and faster" if chosen.precision == "bf16" else "bf16 is not both native and faster"
        typer.echo(f"precision {chosen.precision} on {device_of(asked).type}: {reason}", err=True)
    return chosen


def faster_precision(machine: Machine) -> str:
    """A hint after training in 32 bits on a processor that has bf16; empty after any other."""
    from torchcaps.train import device_of, has_native_bf16

    device = device_of(machine)
    if machine.precision != "32" or device.type != "cpu" or not has_native_bf16(device):
        return ""
    return "this processor has bf16: --precision auto may train faster, with coarser numbers"


def read_levels(text: str) -> Levels | None:
    """Levels from an option: even, a number for all layers, several with commas between; None for auto."""
    from torchcaps.core import UserError

    if text == "even":
        return "even"
    if text == "auto":
        return None
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError as error:
        raise UserError(
            f"--levels takes whole numbers such as 11 or 11,6, or even or auto; got {text!r}"
        ) from error
    return numbers[0] if len(numbers) == 1 else numbers


def levels_for(run: Run, text: str, data_dir: Path | None) -> Levels:
    """The levels that an option asks for; what auto chose is said on stderr."""
    from torchcaps.parse import choose_levels_of_run
    from torchcaps.zoo import given_name

    levels = read_levels(text)
    if levels is not None:
        return levels
    chosen = choose_levels_of_run(run, data_dir=data_dir)
    typer.echo(
        f"{given_name(run.folder)}: {chosen.levels} levels, {chosen.accuracy:.2%} of the validation images "
        f"right; {chosen.accuracy_without:.2%} without quantization",
        err=True,
    )
    return chosen.levels
