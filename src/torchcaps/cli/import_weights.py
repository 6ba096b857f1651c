"""`torchcaps import-weights`: published weights of other libraries as files of this one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Turn published weights of other libraries into ours.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(metavar="FILE", help="Weights to read.")]


@app.command("keras-efficient-capsnet")
def keras_efficient_capsnet(
    file: File,
    out: Annotated[Path, typer.Option("--out", file_okay=False, help="Run folder to write.")],
    recipe: Annotated[
        str, typer.Option("--recipe", help="The recipe these weights belong to: a YAML file or a name.")
    ] = "mnist/efficient_capsnet",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Replace a key: model.decoder=none."),
    ] = None,
) -> None:
    """Make a run of the authors' Keras weights (.h5), for eval, predict and export."""
    from torchcaps.inspection import count_parameters
    from torchcaps.train import load_recipe
    from torchcaps.train.import_weights import import_efficient_capsnet_run

    model = import_efficient_capsnet_run(file, load_recipe(recipe, set_ or []), out)
    typer.echo(f"{count_parameters(model):,} parameters; run saved in {out}")


@app.command("torchvision-resnet")
def torchvision_resnet(
    file: File,
    out: Annotated[Path, typer.Option("--out", dir_okay=False, help="File to write, .safetensors.")],
    trunk: Annotated[
        str, typer.Option("--trunk", help="Which of our ResNet trunks they are for.")
    ] = "resnet50",
) -> None:
    """Write a torchvision ResNet, less its classifier, as weights of our trunk."""
    from torchcaps.inspection import count_parameters
    from torchcaps.train.import_weights import import_trunk_file

    model = import_trunk_file(file, out, trunk)
    typer.echo(f"{count_parameters(model):,} parameters; trunk saved in {out}")
