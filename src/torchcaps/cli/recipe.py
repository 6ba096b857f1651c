"""`torchcaps recipe`: what a recipe says."""

from __future__ import annotations

import typer

from .terminal import Changes, Json, RecipeName, print_json

app = typer.Typer(help="Print a recipe with all of its keys.", no_args_is_help=True)


@app.command("show")
def show(
    recipe: RecipeName,
    set_: Changes = None,
    json: Json = False,
) -> None:
    """Print a recipe with every default written out and what each key means; train reads the output."""
    from torchcaps.train import annotated_recipe, load_recipe, recipe_as_json

    found = load_recipe(recipe, set_ or [])
    if json:
        print_json(recipe_as_json(found))
    else:
        typer.echo(annotated_recipe(found), nl=False)
