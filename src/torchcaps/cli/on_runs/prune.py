"""`torchcaps prune`: a run with fewer channels, from a trained one."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from ..terminal import CountBar, DataDir, Device, Json, Precision, Quiet, RunFolder, print_json

if TYPE_CHECKING:
    from torchcaps.train import PruneResult


def command(
    run: RunFolder,
    method: Annotated[str, typer.Option("--method", help="eagleeye, l1 or random.")] = "eagleeye",
    flops: Annotated[float, typer.Option("--flops", help="Share of the trunk's FLOPs to keep.")] = 0.5,
    candidates: Annotated[
        int, typer.Option("--candidates", min=1, help="Pruned networks that EagleEye compares.")
    ] = 50,
    batches: Annotated[
        int, typer.Option("--batches", min=1, help="Training batches that adapt the batch norms of each.")
    ] = 100,
    multiple: Annotated[
        int,
        typer.Option("--multiple", min=1, help="Keep a multiple of this many channels; 8 is fast on GPUs."),
    ] = 1,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the candidates.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", file_okay=False, help="Folder of the pruned run; default RUN-METHOD-FLOPS."),
    ] = None,
    device: Device = "auto",
    precision: Precision = "32",
    data_dir: DataDir = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Remove channels from the trunk of a run.

    Called again, an interrupted search goes on.
    """
    from torchcaps.train import Machine, StructuredPruning, prune_run
    from torchcaps.zoo import sibling_folder

    folder = out or sibling_folder(run, f"-{method}-{flops:g}")
    settings = StructuredPruning(
        method=method,  # type: ignore[arg-type]
        flops=flops,
        candidates=candidates,
        batches=batches,
        multiple=multiple,
        seed=seed,
    )
    machine = Machine(device=device, precision=precision, data_dir=data_dir)  # type: ignore[arg-type]
    with CountBar("candidates", is_shown=not (json or quiet)) as bar:

        def say_best(done: int, planned: int, best: str) -> None:
            bar.reached(done, planned, f"best {best}")

        result = prune_run(run, folder, settings, machine, on_candidate=say_best)
    if json:
        print_json(result)
    else:
        _print(result, folder)


def _print(result: PruneResult, folder: Path) -> None:
    from torchcaps.train import stored_recipe

    search, macs, metrics = result["search"], result["macs"], result["metrics"]
    leading = stored_recipe(result["recipe"]).task.leading_metric
    found = f"{leading.title} {leading.format(metrics[f'test_{leading.name}'])}"
    if search["is_narrowed"]:
        typer.echo(
            f"ratios were drawn from {search['lowest']:.2f} to {search['highest']:.2f}: "
            "wider ones hardly ever met the target"
        )
    typer.echo(
        f"{macs['after']:,} of {macs['before']:,} multiply-adds in the trunk "
        f"({macs['after'] / macs['before']:.1%}), {result['parameters']:,} parameters in all"
    )
    typer.echo(f"test {found} before fine-tuning, the best of {len(search['scores'])}; run saved in {folder}")
    recipe, tuned = quote(str(folder / "recipe.yaml")), quote(f"{folder}-tuned")
    typer.echo(f"fine-tune it with: torchcaps train {recipe} --out {tuned}")
