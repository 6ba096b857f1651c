"""`torchcaps parse`: how many parse trees a run has."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..terminal import (
    DataDir,
    Device,
    Json,
    LevelsOption,
    RunFolder,
    choose_device,
    levels_for,
    print_json,
    print_table,
    working,
)


def command(
    run: RunFolder,
    split: Annotated[str, typer.Option("--split", help="test, validation or train.")] = "test",
    levels: LevelsOption = "even",
    limit: Annotated[
        int | None, typer.Option("--limit", help="Look at this many images, drawn from the split.")
    ] = None,
    data_dir: DataDir = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Count the parse trees of a run.

    Couplings are quantized; accuracy, keys and entropy are printed for each class.
    """
    from torchcaps.parse import analyse_run
    from torchcaps.train import load_run
    from torchcaps.zoo import given_name

    loaded = load_run(run, choose_device(device))
    with working("counting parse trees"):
        chosen = levels_for(loaded, levels, data_dir)
        found = analyse_run(loaded, split, levels=chosen, limit=limit, data_dir=data_dir)
    result = {"run": given_name(run), "data": loaded.recipe.data.name, "split": split, **found.as_json()}
    if json:
        print_json(result)
    else:
        _print(result)


def _print(result: dict[str, Any]) -> None:
    from torchcaps.core import counted
    from torchcaps.parse import say_needless, say_rounded_up

    typer.echo(
        f"{result['data']} {result['split']}: {counted(result['images'], 'image')}, {result['children']:,} "
        f"capsules vote, couplings in {result['levels']} levels"
    )
    typer.echo(
        f"accuracy {result['accuracy']:.2%}, quantized {result['quantized_accuracy']:.2%}, with even "
        f"couplings {result['even_accuracy']:.2%}"
    )
    typer.echo(
        f"entropy {result['entropy']:.2f} bits, the mean over classes; "
        f"{counted(result['keys'], 'parse tree')}"
    )
    needless = say_needless(result["accuracy"], result["even_accuracy"], images=result["images"])
    rounded = say_rounded_up(len(result["classes"]), result["levels"])
    typer.echo("".join(f"{remark}\n" for remark in (needless, rounded) if remark))
    print_table(
        [
            {
                "class": row["class"],
                "images": row["images"],
                "trees": row["keys"],
                "entropy": "never predicted" if row["entropy"] is None else f"{row['entropy']:.2f} bits",
                "at most": "" if row["bound"] is None else f"{row['bound']:.2f}",
            }
            for row in result["classes"]
        ]
    )
