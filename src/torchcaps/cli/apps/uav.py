"""`torchcaps uav`: maps and descriptors of unmanned aerial vehicles; their flights are in `uav_flights`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..terminal import (
    Changes,
    CountBar,
    Device,
    Json,
    MeasuresFile,
    ProgressBar,
    Quiet,
    RecipeCommand,
    Resume,
    choose_device,
    found_run,
    print_json,
    working,
    writable,
)

if TYPE_CHECKING:
    from torchcaps.data import SeasonStack

app = typer.Typer(
    help="Find out where a vehicle flies, from what it sees and an orthophoto.", no_args_is_help=True
)
Maps = Annotated[
    list[Path],
    typer.Argument(
        metavar="MAP...", help="GeoTIFFs of one place on several dates, folders of them, or .npz."
    ),
]
RunOption = Annotated[
    Path,
    typer.Option(
        "--run",
        help="Folder that uav train, uav abbrief or uav building-ratio wrote, or a name from `torchcaps "
        "weights list`.",
        callback=found_run,
    ),
]
Pixel = Annotated[
    float | None, typer.Option("--metres-per-pixel", help="Read maps at this resolution; default their own.")
]
PlaceCount = Annotated[int, typer.Option("--places", help="Places to tell apart.")]
ViewCount = Annotated[int, typer.Option("--views", help="Views of each place.")]
Offset = Annotated[float, typer.Option("--offset", help="How far a view may lie from its place, in metres.")]
HandmadeRun = Annotated[
    Path, typer.Option("--out", file_okay=False, help="Folder to use as --run.", callback=writable)
]
Date = Annotated[str | None, typer.Option("--date", help="Which date of several, by the name of its file.")]


@app.command("terrain")
def terrain(
    out: Annotated[
        Path,
        typer.Argument(file_okay=False, help="Folder for one GeoTIFF for each season.", callback=writable),
    ],
    width: Annotated[float, typer.Option("--width", help="Width of the terrain in metres.")] = 3000.0,
    height: Annotated[float, typer.Option("--height", help="Height of the terrain in metres.")] = 2000.0,
    pixel: Annotated[float, typer.Option("--metres-per-pixel", help="Resolution of the drawn maps.")] = 2.0,
    seed: Annotated[int, typer.Option("--seed", help="Another seed draws another terrain.")] = 0,
) -> None:
    """Draw a terrain in four seasons, to try the other commands on."""
    from torchcaps.apps.uav import Terrain, write_seasons

    with working("drawing"):
        written = write_seasons(Terrain(seed).draw(width, height, pixel), out)
    for path in written:
        typer.echo(str(path))


@app.command("stack")
def stack(
    maps: Maps,
    out: Annotated[
        Path,
        typer.Option("--out", dir_okay=False, metavar="FILE.npz", help="File to write.", callback=writable),
    ],
    pixel: Pixel = None,
) -> None:
    """Keep maps of several dates in one file, for machines that cannot read GeoTIFFs."""
    from torchcaps.core import UserError
    from torchcaps.data import save_stack

    if out.suffix != ".npz":
        raise UserError(f"a season stack is read by its name, which ends in .npz, not as in {out}")
    found = _opened(maps, pixel)
    save_stack(out, found)
    typer.echo(
        f"{out}: {len(found.names)} dates of {found.width}x{found.height} pixels, {found.pixel:g} m each"
    )


@app.command("train", cls=RecipeCommand)
def train(
    maps: Maps,
    out: Annotated[Path, typer.Option("--out", file_okay=False, help="Run folder.")],
    recipe: Annotated[str, typer.Option("--recipe", help="Recipe of the network.")] = "retrieval/uav_small",
    set_: Changes = None,
    pixel: Pixel = None,
    places: PlaceCount = 2250,
    views: ViewCount = 20,
    offset: Offset = 35.0,
    resume: Resume = False,
    device: Device = "auto",
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train a descriptor of ground that does not change with the seasons.

    Files are dates of one place; each folder is a place of its own. The eastern fifth of each map does not
    train: on it the distances of matches are measured.
    """
    from torchcaps.apps.uav import train_descriptor
    from torchcaps.core import UserError
    from torchcaps.data import PlacePlan
    from torchcaps.train import Machine, load_recipe, recipe_for_data

    if (task := load_recipe(recipe).task.name) != "retrieval":
        raise UserError(
            f"{recipe} is a recipe of {task}; this needs one of retrieval, as retrieval/uav_small"
        )
    plan = PlacePlan(places=places, views=views, offset=offset)
    stacks = _regions(maps, pixel)
    with ProgressBar(is_shown=not (json or quiet)) as bar:
        result = train_descriptor(
            stacks,
            out,
            lambda data: recipe_for_data(recipe, set_ or [], data=data).recipe,
            plan=plan,
            machine=Machine(device=device),
            resume=resume,
            watcher=bar,
        )
    if json:
        print_json(result)
        return
    found = result["metrics"]
    typer.echo(f"test recall at 1 {found['test_recall_at_1']:.1%}; run saved in {out}")


@app.command("eval")
def evaluate(
    maps: Maps,
    run: RunOption,
    places: PlaceCount = 2250,
    views: ViewCount = 20,
    offset: Offset = 35.0,
    out: MeasuresFile = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Test a trained descriptor again, on the views that uav train tests on.

    With the maps of its training and the same --places, --views and --offset they are the same views, of a
    fifth as many places, on the eastern fifth of each map.
    """
    from torchcaps.apps.uav import evaluate_descriptor, load_matching
    from torchcaps.data import PlacePlan
    from torchcaps.storage import write_json
    from torchcaps.train import load_run

    loaded = load_run(run, choose_device(device))
    plan = PlacePlan(places=places, views=views, offset=offset)
    with working("evaluating"):
        found = evaluate_descriptor(loaded, _regions(maps, load_matching(run).pixel), plan)
    if out is not None:
        write_json(out, found)
    if json:
        print_json(found)
        return
    typer.echo(
        f"{found['images']:,} views of {found['places']} places: recall at 1 {found['recall_at_1']:.2%}, "
        f"loss {found['loss']:.4f}"
    )


@app.command("abbrief")
def abbrief(
    maps: Maps,
    out: HandmadeRun,
    side: Annotated[int, typer.Option("--side", help="Pixels of a crop.")] = 100,
    bits: Annotated[int, typer.Option("--bits", help="Bits of a descriptor.")] = 128,
    pixel: Pixel = None,
) -> None:
    """Prepare the handmade abBRIEF descriptor, which needs no training, for comparison."""
    from torchcaps.apps.uav import AbBrief, measure_matching

    describer = AbBrief(side, bits)
    matching = measure_matching(describer, _regions(maps, pixel))
    describer.save(out)
    matching.save(out)
    typer.echo(f"saved in {out}")


@app.command("building-ratio")
def building_ratio(
    maps: Maps,
    out: HandmadeRun,
    side: Annotated[int, typer.Option("--side", help="Pixels of a crop.")] = 100,
    rings: Annotated[
        int, typer.Option("--rings", help="Rings in which the share of buildings is counted.")
    ] = 8,
    segmenter: Annotated[
        Path | None,
        typer.Option(
            "--segmenter", metavar="FILE.onnx", help="Network that finds buildings; without it colours do."
        ),
    ] = None,
    pixel: Pixel = None,
) -> None:
    """Prepare the descriptor of building ratios, which needs no training, for comparison."""
    from torchcaps.apps.uav import building_ratio as prepare
    from torchcaps.apps.uav import measure_matching

    describer = prepare(side, rings, segmenter)
    matching = measure_matching(describer, _regions(maps, pixel))
    describer.save(out, segmenter)
    matching.save(out)
    typer.echo(f"saved in {out}")


@app.command("compile-map")
def compile_map(
    maps: Annotated[list[Path], typer.Argument(metavar="MAP", help="GeoTIFF, or .npz with --date.")],
    run: RunOption,
    out: Annotated[
        Path,
        typer.Option("--out", dir_okay=False, metavar="FILE.tcmap", help="File to write.", callback=writable),
    ],
    storage: Annotated[
        str, typer.Option("--storage", help="How descriptors are kept: float32, float16, int8 or product.")
    ] = "int8",
    cell: Annotated[float, typer.Option("--cell", help="Side of a cell of the map in metres.")] = 10.0,
    headings: Annotated[int, typer.Option("--headings", help="How many headings of each cell.")] = 60,
    code_bytes: Annotated[
        int, typer.Option("--code-bytes", help="With --storage product: bytes of a descriptor.")
    ] = 16,
    date: Date = None,
    device: Device = "auto",
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Describe every place and heading of a map; called again after a stop, it goes on."""
    from torchcaps.apps.uav import CompileSettings, load_describer, load_matching, open_map
    from torchcaps.apps.uav import compile_map as compile_voxels

    matching = load_matching(run)
    stack = one_date(maps, date, matching.pixel)
    settings = CompileSettings(cell, headings, storage, code_bytes)  # type: ignore[arg-type]  # checked below
    describer = load_describer(run, choose_device(device))
    with CountBar("descriptors", is_shown=not (quiet or json)) as bar:
        loss = compile_voxels(
            stack,
            describer,
            out,
            settings,
            likelihood=matching.likelihood("bayesian"),
            on_described=bar.reached,
        )
    size, unknown = out.stat().st_size, open_map(out).unknown_share
    if json:
        print_json(
            {"map": str(out), "bytes": size, "log_likelihood_loss": vars(loss), "unknown_share": unknown}
        )
        return
    typer.echo(
        f"{out}: {size / 1e6:,.1f} MB; {storage} changes log-likelihoods by {loss.mean:.4f} on average, "
        f"at most {loss.largest:.3f}"
    )
    if unknown:
        typer.echo(
            f"{unknown:.1%} of the map is unknown (without data or black): flights are not looked for there"
        )


def _opened(paths: list[Path], pixel: float | None) -> SeasonStack:
    """Dates of one place; large maps take minutes to read."""
    from torchcaps.apps.uav import open_maps

    with working("reading maps"):
        return open_maps(paths, pixel)


def _regions(paths: list[Path], pixel: float | None) -> list[SeasonStack]:
    """Files together are one place, each folder is another."""
    folders, files = [p for p in paths if p.is_dir()], [p for p in paths if not p.is_dir()]
    groups = [[folder] for folder in folders] + ([files] if files else [])
    stacks = [_opened(group, pixel) for group in groups]
    for stack in stacks:
        if len(stack.names) == 1:
            typer.echo(
                f"{stack.names[0]} is the only date of its place: views are compared with views of the same "
                "image, so recall and likelihood say nothing about other dates",
                err=True,
            )
    return stacks


def one_date(paths: list[Path], date: str | None, pixel: float) -> SeasonStack:
    """The map of one date; several without a choice are an error."""
    from torchcaps.core import UserError

    stack = _opened(paths, pixel)
    if date is not None:
        return stack.dates([date])
    if len(stack.names) > 1:
        raise UserError(f"the map has several dates; choose one with --date: {', '.join(stack.names)}")
    return stack
