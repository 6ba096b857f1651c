"""`torchcaps data`: fetch datasets and check their files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .terminal import DataDir, Json, named_data, print_json, print_table, working, writable

if TYPE_CHECKING:
    from torchcaps.data import FileFinding, FolderFinding

app = typer.Typer(help="Fetch datasets and check their files.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="A name from `torchcaps list datasets`.")]
NameOrFolder = Annotated[
    str,
    typer.Argument(help="A name from `torchcaps list datasets`, or a folder of images.", callback=named_data),
]


@app.command("get")
def get(name: Name, data_dir: DataDir = None) -> None:
    """Download a dataset, verified by checksum."""
    from torchcaps.data import get_dataset

    paths = get_dataset(name, data_dir, progress=True)
    for path in paths:
        typer.echo(str(path))
    if not paths:
        typer.echo(f"{name} can be read; there is nothing to fetch")


@app.command("check")
def check(name: NameOrFolder, data_dir: DataDir = None, json: Json = False) -> None:
    """Check the files of a dataset; exit code 1 when one is missing or damaged."""
    from dataclasses import asdict

    from torchcaps.data import FOLDER_PREFIX, check_dataset, check_folder

    if name.startswith(FOLDER_PREFIX):
        with working("reading the images"):
            found = check_folder(name, data_dir)
        _show_folder(name, found, json=json)
        return
    with working("reading the files"):
        findings = check_dataset(name, data_dir)
    if json:
        print_json([asdict(finding) | {"path": str(finding.path)} for finding in findings])
    elif findings:
        print_table([_in_words(finding) for finding in findings])
        if all(finding.is_readable for finding in findings) and not all(each.is_ok for each in findings):
            typer.echo(f"{name} can be read, from other files than the published ones")
    else:
        typer.echo(f"{name} can be read; there are no published files to compare with")
    if not all(finding.is_ok for finding in findings):
        raise typer.Exit(1)


def _in_words(finding: FileFinding) -> dict[str, str]:
    said = {True: "yes", False: "no", None: ""}
    return {
        "file": str(finding.path),
        "there": said[finding.is_present],
        "right size": said[finding.is_size_ok],
        "right checksum": said[finding.is_checksum_ok],
        "readable": said[finding.is_readable],
        "note": finding.note,
    }


def _show_folder(name: str, found: FolderFinding, *, json: bool) -> None:
    from torchcaps.core import counted
    from torchcaps.data.folders import SUFFIXES

    if json:
        copies = {str(path): str(copied) for path, copied in found.copies.items()}
        left_out = {"skipped": list(map(str, found.skipped)), "outside": list(map(str, found.outside))}
        print_json({"images": found.images, **left_out, "copies": copies})
        return
    *others, last = (f"{count:,} {split}" for split, count in found.images.items())
    typer.echo(f"{name}: all {', '.join(others)} and {last} images can be read")
    if found.skipped:
        typer.echo(
            f"{counted(len(found.skipped), 'image')} will be skipped, such as {found.skipped[0]}: training "
            f"reads names that end in {', '.join(sorted(SUFFIXES))}"
        )
    if found.outside:
        typer.echo(
            f"{counted(len(found.outside), 'image')} will not be used, such as {found.outside[0]}: training "
            "reads the folders train, test and val"
        )
    if found.copies:
        path, copied = next(iter(found.copies.items()))
        typer.echo(
            f"{counted(len(found.copies), 'test image')} can be found among the training images, such as "
            f"{path}, a copy of {copied}: remove one of the two, because what was learnt tests nothing"
        )


@app.command("draw")
def draw(
    out: Annotated[Path, typer.Argument(file_okay=False, help="Folder to write.", callback=writable)],
    name: Annotated[str, typer.Option("--name", help="partwhole, with or without settings.")] = "partwhole",
    split: Annotated[
        str | None, typer.Option("--split", help="train or test: the images that recipes see.")
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", help="How many images; else 1,000, or those of the split.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of the random numbers; else 0.")] = None,
    pictures: Annotated[bool, typer.Option("--pictures", help="Also write PNG files.")] = False,
) -> None:
    """Draw PartWhole images and write them with their part masks, poses and trees, for any framework."""
    from torchcaps.core import counted
    from torchcaps.data import draw_named, write_partwhole

    drawn, design, used = draw_named(name, split=split, count=count, seed=seed)
    write_partwhole(out, drawn, design, seed=used, pictures=pictures)
    typer.echo(
        f"{out}: {counted(len(drawn), 'image')} of {design.size}x{design.size}, {design.classes} classes"
    )
