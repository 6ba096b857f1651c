"""`torchcaps recipe`: what a recipe says."""

from __future__ import annotations

from typing import Annotated

import typer

from .options import Json
from .show import print_json

app = typer.Typer(help="Look at recipes.", no_args_is_help=True)


@app.command("show")
def show(
    recipe: Annotated[
        str, typer.Argument(help="Path of a YAML file, or a name from `torchcaps list recipes`.")
    ],
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Replace a key: optim.learning_rate=3e-4.")
    ] = None,
    json: Json = False,
) -> None:
    """Print a recipe with every default written out and what each key means; train reads the output."""
    from torchcaps.train import annotated_recipe, load_recipe, recipe_as_json

    found = load_recipe(recipe, set_ or [])
    if json:
        print_json(recipe_as_json(found))
    else:
        typer.echo(annotated_recipe(found), nl=False)
