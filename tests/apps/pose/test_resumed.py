"""A rendering does not go on in a folder whose images show something else."""

from dataclasses import replace

import pytest

from torchcaps.apps.pose.render import choose_engine, prepare_meshes, render_scene
from torchcaps.apps.pose.resumed import require_same_meshes, require_same_poses
from torchcaps.apps.pose.scene import Meshes, Rotations, Scene
from torchcaps.core import UserError
from torchcaps.data.rendering import load_meshes

SCENE = Scene(resolution=(24, 24), rotations=Rotations(kind="random", count=5))
TORCH = choose_engine("torch")


def test_what_is_missing_is_rendered_to_the_same_bytes(tmp_path):
    engine = choose_engine("auto")  # OpenGL, where it starts: it rounds by the place of an image among others
    scene = Scene(resolution=(100, 100), rotations=Rotations(kind="random", count=64))
    assert render_scene(scene, tmp_path, engine) == 128
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.png")}
    lost = [path for path in before if int(path.stem) >= 7]
    for path in lost:
        path.unlink()
    kept = {path: path.stat().st_mtime_ns for path in before.keys() - set(lost)}
    assert render_scene(scene, tmp_path, engine) == 114
    assert {path: path.read_bytes() for path in before} == before
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


def test_two_engines_do_not_share_a_folder(tmp_path):
    class Other:
        kind, at_once = "other", TORCH.at_once

        def __call__(self, *arguments):
            return TORCH(*arguments)

    render_scene(SCENE, tmp_path, Other())
    assert render_scene(SCENE, tmp_path, TORCH) == 0  # there is nothing to mix
    next((tmp_path / "images").rglob("*.png")).unlink()
    with pytest.raises(UserError, match="go on with --engine other"):
        render_scene(SCENE, tmp_path, TORCH)
    assert render_scene(SCENE, tmp_path, Other()) == 1


def test_images_in_rotations_of_a_file_that_changed_get_no_other_labels(tmp_path):
    file = tmp_path / "rotations.csv"
    scene = replace(SCENE, rotations=Rotations(kind="file", file=str(file)))
    file.write_text("w,x,y,z\n1,0,0,0\n0.6,0.8,0,0\n0,0,1,0\n")
    render_scene(scene, tmp_path / "out", TORCH)
    before = (tmp_path / "out/poses.csv").read_bytes()
    assert render_scene(scene, tmp_path / "out", TORCH) == 0
    file.write_text("x,y,z,w\n1,0,0,0\n0.6,0.8,0,0\n0,0,1,0\n")
    with pytest.raises(UserError, match="holds images of other rotations; choose another --out"):
        render_scene(scene, tmp_path / "out", TORCH)
    assert (tmp_path / "out/poses.csv").read_bytes() == before


def test_images_of_a_mesh_that_changed_are_not_taken_for_the_new_one(tmp_path):
    pytest.importorskip("trimesh")
    mesh = tmp_path / "meshes/thing/one.off"
    mesh.parent.mkdir(parents=True)
    lines = "OFF\n4 4 0\n0 0 0\n1 0 0\n0 1 0\n0 0 {}\n3 0 2 1\n3 0 1 3\n3 0 3 2\n3 1 2 3\n"
    scene = replace(SCENE, meshes=Meshes(folder=str(mesh.parents[1])))
    mesh.write_text(lines.format(1))
    prepare_meshes(scene, tmp_path / "out", print)
    mesh.write_text(lines.format(2))
    prepare_meshes(scene, tmp_path / "out", print)  # there are no images yet
    render_scene(scene, tmp_path / "out", TORCH)
    mesh.write_text(lines.format(3))
    with pytest.raises(UserError, match="holds images of other meshes"):
        render_scene(scene, tmp_path / "out", TORCH)


@pytest.mark.parametrize(("change", "is_kept"), [(0.002, True), (0.05, False)])
def test_images_of_a_mesh_in_another_colour_are_not_taken_for_the_new_one(tmp_path, change, is_kept):
    """An archive keeps 256 levels of each colour."""
    render_scene(SCENE, tmp_path, TORCH)
    found = load_meshes(tmp_path / "meshes.npz")
    first, *others = found.objects
    mesh = first.mesh._replace(colours=first.mesh.colours + change)
    changed = found._replace(objects=(first._replace(mesh=mesh), *others))
    if is_kept:
        require_same_meshes(tmp_path, changed)
        return
    with pytest.raises(UserError, match="holds images of other meshes"):
        require_same_meshes(tmp_path, changed)


@pytest.mark.parametrize(("change", "is_kept"), [(1e-6, True), (1e-3, False)])
def test_labels_of_a_folder_are_kept_to_the_fifth_digit(tmp_path, change, is_kept):
    """Processors round differently; a thousandth is a tenth of a degree."""
    lines = "image,class,object,split,w,x,y,z\nimages/a.png,a,a/1,train,{},0.8,0,0\n"
    (tmp_path / "poses.csv").write_text(lines.format(0.6))
    if is_kept:
        require_same_poses(tmp_path, lines.format(0.6 + change))
        return
    with pytest.raises(UserError, match="other rotations"):
        require_same_poses(tmp_path, lines.format(0.6 + change))
