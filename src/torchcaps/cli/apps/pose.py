"""`torchcaps pose`: render objects, learn their rotations, and predict them."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..on_runs import show_result
from ..terminal import (
    Changes,
    CountBar,
    DataDir,
    Device,
    Images,
    Json,
    NewRun,
    Precision,
    Quiet,
    RecipeCommand,
    RecipeName,
    Resume,
    RunFolder,
    choose_device,
    choose_machine,
    found_images,
    named_data,
    print_answers,
    print_json,
    say_chosen,
)
from ..train import summary, train_fitted

if TYPE_CHECKING:
    from torchcaps.apps.pose import EngineName

app = typer.Typer(help="Class and rotation of objects: render, train, predict.", no_args_is_help=True)


@app.command("render")
def render(
    scene: Annotated[
        Path | None, typer.Argument(metavar="SCENE", help="YAML file; without it, the thesis's scene.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", file_okay=False, help="Folder of the images.")] = Path(
        "rendered"
    ),
    engine: Annotated[str, typer.Option("--engine", help="auto, torch, opengl or blender.")] = "auto",
    meshes: Annotated[
        Path | None,
        typer.Option("--meshes", help="Folder of class folders of meshes, instead of the scene's."),
    ] = None,
    blender: Annotated[
        Path | None, typer.Option("--blender-python", help="Python that can import bpy.")
    ] = None,
    meshes_only: Annotated[
        bool, typer.Option("--meshes-only", help="Write meshes.npz alone, to be rendered while training.")
    ] = False,
    device: Device = "auto",
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Render a scene to images with quaternions (w, x, y, z), masks and the camera matrix."""
    from torchcaps.apps.pose import (
        Scene,
        choose_engine,
        load_scene,
        prepare_meshes,
        render_scene,
        with_meshes,
    )

    settings = with_meshes(Scene() if scene is None else load_scene(scene), meshes)

    def report(words: str) -> None:
        typer.echo(words, err=True)

    if meshes_only:
        found = prepare_meshes(settings, out, report)
        result: dict[str, Any] = {"meshes": str(out / "meshes.npz"), "objects": len(found.objects)}
    else:
        chosen = choose_engine(_engine(engine), choose_device(device), blender)
        with CountBar("images", is_shown=not (quiet or json)) as bar:
            rendered = render_scene(settings, out, chosen, report=report, on_images=bar.reached)
        result = {"folder": str(out), "images": bar.planned, "rendered": rendered}
    if json:
        print_json(result)
        return
    typer.echo(", ".join(f"{key} {value}" for key, value in result.items()))
    if not meshes_only:
        typer.echo(f"learn from them: torchcaps pose train --data {quote(str(out))}")


@app.command("train", cls=RecipeCommand)
def train(
    recipe: RecipeName = "pose/em_posenet_markley",
    set_: Changes = None,
    data: Annotated[
        str | None, typer.Option("--data", help="Another dataset, or a folder that pose render wrote.")
    ] = None,
    out: NewRun = None,
    resume: Resume = False,
    device: Device = "auto",
    precision: Precision = "32",
    data_dir: DataDir = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train a pose network and calibrate how certain its rotations are."""
    from torchcaps.apps.pose import calibrate_run, has_votes
    from torchcaps.train import load_run, recipe_for_data, run_name

    fitted = recipe_for_data(recipe, set_ or [], data=data, data_dir=data_dir)
    folder = out or Path("runs") / run_name(recipe, fitted)
    if not quiet:
        say_chosen(fitted)
    machine = choose_machine(device, precision, data_dir, quiet=quiet)
    result = train_fitted(fitted, folder, machine, resume=resume, is_shown=not (json or quiet))
    run = load_run(folder, choose_device(device))
    if has_votes(run):
        calibrate_run(run, data_dir)
    if json:
        print_json(result)
    else:
        typer.echo(summary(result, fitted.recipe, folder))


@app.command("eval")
def evaluate(
    run: RunFolder,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            help="Another dataset of the same objects, or a folder that pose render wrote.",
            callback=named_data,
        ),
    ] = None,
    split: Annotated[str, typer.Option("--split", help="test, validation or train.")] = "test",
    data_dir: DataDir = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Evaluate a run: accuracy, errors in degrees, and whether its uncertainty can be trusted."""
    from torchcaps.apps.pose import (
        COVERED_SHARE,
        coverage,
        forgives_symmetries,
        has_votes,
        judge_run,
        known_calibration,
    )
    from torchcaps.core import counted
    from torchcaps.train import load_run
    from torchcaps.zoo import evaluate_run

    loaded = load_run(run, choose_device(device))
    loaded.expect_task("pose")
    result = evaluate_run(loaded, split, data_name=data, data_dir=data_dir)
    if has_votes(loaded):
        calibration = known_calibration(loaded, data_dir)
        if calibration.is_enough:
            judged = judge_run(loaded, split, data_name=data, data_dir=data_dir)
            result["covered"] = coverage(calibration, judged)
        else:
            few = counted(calibration.images, "validation image")
            typer.echo(f"{few}: too few to state how far off a rotation may be", err=True)
    if json:
        print_json(result)
        return
    show_result(result, loaded)
    if "covered" in result:
        alike = ", up to symmetry" if forgives_symmetries(loaded) else ""
        typer.echo(
            f"within the angle stated for {COVERED_SHARE:.0%}{alike}: {result['covered']:.1%} of the images"
        )


@app.command("predict")
def predict(
    run: RunFolder,
    images: Images,
    out: Annotated[
        Path | None,
        typer.Option("--out", file_okay=False, help="Folder for pictures of the object beside the image."),
    ] = None,
    meshes: Annotated[
        Path | None, typer.Option("--meshes", help="meshes.npz of the classes, to draw the object.")
    ] = None,
    data_dir: DataDir = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Say class, quaternion (w, x, y, z), Euler angles and uncertainty of the object in image files."""
    from torchcaps.apps.pose import Estimator
    from torchcaps.data.rendering import load_meshes
    from torchcaps.train import load_run

    known = None if meshes is None else load_meshes(meshes)
    estimator = Estimator(load_run(run, choose_device(device)), known, data_dir)
    if out is not None and estimator.meshes is None:
        typer.echo(
            "no pictures: the objects of the run are not found here; give --meshes meshes.npz", err=True
        )
    answer = estimator.answer if out is None else estimator.drawn_answer
    print_answers(found_images(images), out, answer, json=json)


def _engine(name: str) -> EngineName:
    from typing import get_args

    from torchcaps.apps.pose import EngineName
    from torchcaps.core import unknown_name

    if name not in get_args(EngineName):
        raise unknown_name("engine", name, get_args(EngineName))
    return name  # type: ignore[return-value]
