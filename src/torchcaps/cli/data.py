"""`torchcaps data`: fetch datasets and check their files."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import DataDir, Json
from .show import print_json, print_table

app = typer.Typer(help="Fetch datasets and check their files.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="A name from `torchcaps list datasets`.")]


@app.command("get")
def get(name: Name, data_dir: DataDir = None) -> None:
    """Download a dataset, verified by checksum."""
    from torchcaps.data import get_dataset

    for path in get_dataset(name, data_dir, progress=True):
        typer.echo(str(path))


@app.command("check")
def check(name: Name, data_dir: DataDir = None, json: Json = False) -> None:
    """Check the files of a dataset; exit code 1 when one is missing or damaged."""
    from dataclasses import asdict

    from torchcaps.data import check_dataset
    from torchcaps.data.api import FOLDER_PREFIX

    findings = check_dataset(name, data_dir)
    rows = [asdict(finding) | {"path": str(finding.path)} for finding in findings]
    if json:
        print_json(rows)
    elif rows:
        print_table(rows)
    elif name.startswith(FOLDER_PREFIX):
        typer.echo(f"{name}: all training and test images can be read")
    else:
        typer.echo(f"{name} needs no files")
    if not all(finding.is_ok for finding in findings):
        raise typer.Exit(1)
