"""Scenes become folders that can be read for training; a rendering that was interrupted goes on."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from torchcaps.apps.pose.render import choose_engine, plan_poses, render_scene
from torchcaps.apps.pose.scene import (
    Meshes,
    Rotations,
    Scene,
    Splitting,
    load_scene,
    objects_of,
    rotations_of,
)
from torchcaps.core import MissingDataError, UserError
from torchcaps.core.rotation import rotation_angle
from torchcaps.core.seeding import generator
from torchcaps.data import check_dataset, load_dataset
from torchcaps.data.rendering import (
    MeshSet,
    NamedMesh,
    View,
    cube,
    cube_tetrahedron,
    leaked_share,
    load_meshes,
    rasterise,
    render_smooth,
)

SCENE = Scene(
    resolution=(24, 24),
    rotations=Rotations(kind="random", count=5),
    split=Splitting(by="rotation", test=0.4),
)
TORCH = choose_engine("torch")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("rendered")
    assert render_scene(SCENE, out, TORCH) == 10
    return out


def test_a_rendered_folder_is_read_as_it_was_rendered(folder):
    examples = {split: load_dataset(f"folder:{folder}", split, task="pose") for split in ("train", "test")}
    assert [len(each) for each in examples.values()] == [6, 4]
    for each in examples.values():
        assert each.classes == ("cube", "tetrahedron")
        for image, label, rotation in each:
            mesh = cube_tetrahedron().objects[label].mesh
            assert torch.equal(image, rasterise(mesh, rotation[None], SCENE.view).images[0])


def test_a_check_reads_a_rendered_folder(folder, tmp_path):
    assert check_dataset(f"folder:{folder}") == []
    name = changed_copy(folder, tmp_path, lambda rows: as_text(rows, tuple(rows[0])))
    next((tmp_path / "images").rglob("*.png")).write_bytes(b"no picture")
    with pytest.raises(UserError, match="cannot be read as an image"):
        check_dataset(name)


def test_a_rendered_folder_shows_its_training_objects_in_fresh_rotations(folder):
    examples = load_dataset(f"folder:{folder}", "train", task="pose")
    examples.renew(generator(0, "fresh"))
    meshes = load_meshes(folder / "meshes.npz").objects
    for image, label, rotation in examples:
        mesh = meshes[label].mesh
        assert torch.equal(image, render_smooth(mesh, rotation[None], SCENE.view)[0])


def covered(examples):
    """The share of the pixels that show an object."""
    return float((examples.images.amax(1) > 20).float().mean())


@pytest.mark.parametrize("resolution", [(24, 40), (40, 24)])
def test_fresh_images_of_a_folder_are_fitted_as_those_in_it(resolution, tmp_path):
    render_scene(
        replace(SCENE, resolution=resolution, rotations=Rotations(kind="random", count=60)), tmp_path, TORCH
    )
    examples = load_dataset(f"folder:{tmp_path}", "train", size=16, task="pose")
    stored = covered(examples)
    examples.renew(generator(0, "fresh"))
    assert covered(examples) == pytest.approx(stored, rel=0.05)
    for fit in ("pad", "stretch"):  # which no camera sees
        assert not load_dataset(f"folder:{tmp_path}", "train", size=16, fit=fit, task="pose").can_be_renewed


def test_objects_that_test_are_not_shown_anew(folder, tmp_path):
    def by_class(rows):
        for row in rows:
            row["split"] = "train" if row["class"] == "tetrahedron" else "test"
        return as_text(rows, tuple(rows[0]))

    examples = load_dataset(changed_copy(folder, tmp_path, by_class), "train", task="pose")
    examples.renew(generator(0, "fresh"))
    assert set(examples.labels.tolist()) == {1}


def test_without_its_meshes_a_folder_has_no_fresh_images(folder, tmp_path):
    name = changed_copy(folder, tmp_path, lambda rows: as_text(rows, tuple(rows[0])))
    (tmp_path / "meshes.npz").unlink()
    assert not load_dataset(name, "train", task="pose").can_be_renewed


def test_masks_camera_and_order_are_written(folder):
    about = json.loads((folder / "scene.json").read_text())
    assert about["quaternion_order"] == "wxyz"
    assert np.allclose(about["camera_matrix"], SCENE.view.matrix())
    mask = np.array(Image.open(next((folder / "masks/cube").rglob("*.png"))))
    assert set(np.unique(mask)) == {0, 255}
    assert load_meshes(folder / "meshes.npz").classes == ("cube", "tetrahedron")


def test_an_interrupted_rendering_goes_on(tmp_path):
    class Tired:
        kind, at_once = TORCH.kind, TORCH.at_once
        calls = 0

        def __call__(self, *arguments):
            self.calls += 1
            if self.calls == 2:
                raise KeyboardInterrupt
            return TORCH(*arguments)

    with pytest.raises(KeyboardInterrupt):
        render_scene(SCENE, tmp_path, Tired())
    first = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.png")}
    assert len(first) == 10  # images and masks of the cube
    told = []
    assert render_scene(SCENE, tmp_path, TORCH, on_images=lambda *counts: told.append(counts)) == 5
    assert told == [(5, 10), (10, 10)]
    assert all(path.stat().st_mtime_ns == when for path, when in first.items())
    assert render_scene(SCENE, tmp_path, TORCH) == 0


def test_a_folder_with_another_scene_is_kept(folder):
    with pytest.raises(UserError, match="holds images of another scene"):
        render_scene(Scene(resolution=(16, 16)), folder, TORCH)


def test_names_of_images_are_in_the_order_of_their_rotations():
    scene = Scene(rotations=Rotations(kind="random", count=101))
    names = [pose.image for pose in plan_poses(scene, cube_tetrahedron()) if pose.number == 0]
    assert names == sorted(names)
    assert (names[7], names[100]) == ("images/cube/cube/007.png", "images/cube/cube/100.png")


def test_splits_by_rotation_object_and_image():
    meshes = cube_tetrahedron()
    by_rotation = plan_poses(SCENE, meshes)
    tested = [{pose.rotation for pose in by_rotation if pose.split == split} for split in ("train", "test")]
    assert not tested[0] & tested[1]
    by_image = plan_poses(Scene(rotations=SCENE.rotations, split=Splitting(by="image", test=0.3)), meshes)
    assert sum(pose.split == "test" for pose in by_image) == 3
    with pytest.raises(UserError, match="needs two objects"):
        plan_poses(Scene(rotations=SCENE.rotations, split=Splitting(by="object")), meshes)


def test_no_rotation_of_a_grid_with_repetitions_is_on_both_sides():
    scene = Scene(rotations=Rotations(kind="grid", step=60))
    poses = plan_poses(scene, cube_tetrahedron())
    train, test = (
        torch.tensor([pose.rotation for pose in poses if pose.split == split]) for split in ("train", "test")
    )
    assert leaked_share(train, test) == 0
    assert len(test) / len(poses) == pytest.approx(0.2, abs=0.05)


@pytest.mark.parametrize(("share", "tested"), [(0.01, 1), (0.2, 2), (0.5, 5), (0.99, 9)])
def test_the_share_of_a_split_holds_for_objects_too(share, tested):
    named = tuple(NamedMesh(f"cube/{number}", 0, cube()) for number in range(10))
    scene = Scene(rotations=SCENE.rotations, split=Splitting(by="object", test=share))
    poses = plan_poses(scene, MeshSet(("cube",), named))
    assert len({pose.number for pose in poses if pose.split == "test"}) == tested


def test_the_default_scene_is_that_of_the_thesis():
    scene = Scene()
    assert scene.camera.position == (4.0, 0.0, 0.0)
    assert [light.position for light in scene.lights] == [(6.0, 6.0, 4.0), (0.0, 0.0, 0.0)]
    assert scene.resolution == (128, 128)
    assert len(rotations_of(scene)) == 6859
    assert len(rotations_of(Scene(rotations=Rotations(kind="distinct")))) == 2916
    assert scene.view == View()  # of datasets that are rendered when they are read
    assert scene.ambient == 0.05  # of Blender's usual world


def test_scene_files_are_read_and_their_paths_count_from_the_file(tmp_path):
    (tmp_path / "turns.csv").write_text("x,y,z,w\n0,0,0,1\n1,0,0,0\n", encoding="utf-8")
    (tmp_path / "scene.yaml").write_text(
        "background: [0, 0, 1]\nresolution: [16, 20]\ncamera: {position: [5, 0, 0]}\n"
        "lights: [{position: [1, 2, 3], energy: 10}]\nmeshes: {borders: false, location: [0, 0.5, 0]}\n"
        "rotations: {kind: file, file: turns.csv}\n",
        encoding="utf-8",
    )
    scene = load_scene(tmp_path / "scene.yaml")
    assert scene.view.camera.position == (5.0, -0.5, 0.0)
    assert rotations_of(scene).tolist() == [[1, 0, 0, 0], [0, 1, 0, 0]]  # read by the names of the columns
    assert objects_of(scene, print).objects[0].mesh.colours.unique().tolist() == pytest.approx([0.8])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0,0,0,1\n", "must name the columns w, x, y and z"),
        ("w,x,y,z\n2,0,0,0\n", "line 2 is no unit quaternion"),
        ("w,x,y,z\n1.02,0,0,0\n", "line 2 is no unit quaternion"),
        ("w,x,y,z\n1,0,0,0\n\n1,0,0,0\nnan,0,0,0\n", "line 5 is no unit quaternion"),
        ("w,x,y,z\na,0,0,0\n", "must be numbers"),
        ("w,x,y,z\n", "no rotations"),
    ],
)
def test_rotation_files_in_an_unknown_order_are_refused(tmp_path, text, words):
    (tmp_path / "turns.csv").write_text(text, encoding="utf-8")
    scene = Scene(rotations=Rotations(kind="file", file=str(tmp_path / "turns.csv")))
    with pytest.raises(UserError, match=words):
        rotations_of(scene)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("colour: red\n", "unknown key in scene"),
        ("resolution: 128\n", "expected a list"),
        ("split: {test: 2}\n", "between 0 and 1"),
        ("camera: {position: [0, 0, 0]}\n", "must differ"),
        ("- 1\n", "expected a mapping"),
        ("[]\n", "expected a mapping"),
        ("a: [\n", "not valid YAML"),
    ],
)
def test_scene_files_with_mistakes_are_one_line(tmp_path, text, words):
    (tmp_path / "scene.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=words):
        load_scene(tmp_path / "scene.yaml")


@pytest.mark.parametrize(
    ("rotations", "words"),
    [
        (Rotations(step=25), "must divide 360"),
        (Rotations(kind="random", count=0), "at least 1"),
        (Rotations(kind="file"), "names none"),
    ],
)
def test_rotations_that_are_none_are_refused(rotations, words):
    with pytest.raises(UserError, match=words):
        rotations_of(Scene(rotations=rotations))


def test_a_scene_with_a_mistake_leaves_nothing_that_the_mended_one_would_meet(tmp_path):
    engine = choose_engine("torch")
    with pytest.raises(UserError, match="at least 1"):
        render_scene(Scene(rotations=Rotations(kind="random", count=0)), tmp_path / "out", engine)
    assert not (tmp_path / "out").exists()
    mended = Scene(resolution=(8, 8), rotations=Rotations(kind="random", count=2))
    assert render_scene(mended, tmp_path / "out", engine) == 4


def test_a_folder_of_one_class_is_refused_in_words(tmp_path):
    rows = "image,class,object,split,w,x,y,z\na.png,cup,a,train,1,0,0,0\nb.png,cup,a,test,1,0,0,0\n"
    (tmp_path / "poses.csv").write_text(rows, encoding="utf-8")
    for name in ("a.png", "b.png"):
        Image.new("RGB", (8, 8)).save(tmp_path / name)
    with pytest.raises(UserError, match="shows one class, cup; a network tells at least two apart"):
        load_dataset(f"folder:{tmp_path}", "train", task="pose")


def test_meshes_given_as_a_scene_are_answered_with_the_option_for_them(tmp_path):
    with pytest.raises(
        UserError, match="is a folder; a scene is a YAML file, and meshes are given by --meshes"
    ):
        load_scene(tmp_path)
    with pytest.raises(UserError, match=r"cup\.obj is a mesh"):
        load_scene(tmp_path / "cup.obj")


def changed_copy(folder, target, change):
    """The rendered folder with another poses.csv."""
    for path in folder.rglob("*"):
        if path.is_file():
            place = target / path.relative_to(folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.read_bytes())
    with (folder / "poses.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    (target / "poses.csv").write_text(change(rows), encoding="utf-8")
    return f"folder:{target}"


def as_text(rows, columns):
    return "\n".join((",".join(columns), *(",".join(row[name] for name in columns) for row in rows))) + "\n"


def test_quaternions_with_w_last_are_found_out_by_their_silhouettes(folder, tmp_path):
    def wrong(rows):
        for row in rows:
            row["w"], row["x"], row["y"], row["z"] = row["x"], row["y"], row["z"], row["w"]
        return as_text(rows, ("image", "class", "object", "split", "w", "x", "y", "z"))

    with pytest.raises(UserError, match="read as x, y, z, w"):
        load_dataset(changed_copy(folder, tmp_path, wrong), "train", task="pose")


def test_columns_in_another_order_are_read_by_their_names(folder, tmp_path):
    name = changed_copy(
        folder, tmp_path, lambda rows: as_text(rows, ("x", "y", "z", "w", "class", "image", "split"))
    )
    found, expected = (load_dataset(each, "test", task="pose") for each in (name, f"folder:{folder}"))
    assert rotation_angle(found.rotations, expected.rotations).max() < 1e-3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda rows: as_text(rows, ("image", "class", "x", "y", "z")),
            "so that it is known which number is w",
        ),
        (lambda rows: "", "must name the columns"),
        (lambda rows: as_text([{**rows[0], "w": "3"}], tuple(rows[0])), "line 2: .* unit quaternion"),
        (lambda rows: as_text([{**rows[0], "w": "?"}], tuple(rows[0])), "must be numbers"),
        (lambda rows: as_text([{**rows[0], "image": "none.png"}], tuple(rows[0])), "there is no file"),
        (
            lambda rows: as_text([{**rows[0], "image": "../../x.png"}], tuple(rows[0])),
            "outside of the folder",
        ),
        (lambda rows: as_text([{**rows[0], "split": "later"}], tuple(rows[0])), "train or test"),
        (lambda rows: as_text([{**rows[0], "split": ""}], tuple(rows[0])), "is the only image"),
        (lambda rows: as_text([*rows, {**rows[0], "split": "test"}], tuple(rows[0])), "is on 2 lines"),
        (
            lambda rows: as_text([{**rows[0], "split": "test"}], tuple(rows[0])),
            "no images with the split train",
        ),
    ],
)
def test_labels_with_mistakes_are_one_line(folder, tmp_path, change, words):
    with pytest.raises(UserError, match=words):
        load_dataset(changed_copy(folder, tmp_path, change), "train", task="pose")


def test_images_may_lie_elsewhere_in_a_folder_below_one_called_images(folder, tmp_path):
    def moved(rows):
        return as_text(
            [{**row, "image": row["image"].replace("images/", "png/")} for row in rows], tuple(rows[0])
        )

    name = changed_copy(folder, tmp_path / "images" / "mine", moved)
    (tmp_path / "images" / "mine" / "images").rename(tmp_path / "images" / "mine" / "png")
    assert len(load_dataset(name, "train", task="pose")) == 6


def test_an_image_of_another_size_is_named(folder, tmp_path):
    name = changed_copy(folder, tmp_path, lambda rows: as_text(rows, tuple(rows[0])))
    odd = sorted((tmp_path / "images").rglob("*.png"))[0]
    Image.new("RGB", (30, 24)).save(odd)
    with pytest.raises(UserError, match=odd.name):
        [load_dataset(name, split, task="pose") for split in ("train", "test")]


def test_a_folder_without_labels_says_what_writes_them(tmp_path):
    with pytest.raises(MissingDataError, match="torchcaps pose render writes"):
        load_dataset(f"folder:{tmp_path}", "train", task="pose")


def test_meshes_are_turned_into_their_default_pose():
    scene = Scene(meshes=Meshes(rotation=(0.0, 0.0, 90.0)))
    turned, plain = (each.objects[1].mesh.vertices for each in (objects_of(scene, print), cube_tetrahedron()))
    x, y, z = plain[0].tolist()
    assert turned[0].tolist() == pytest.approx([-y, x, z])
