"""`lung eval` and `lung segment` as a user meets them."""

import csv
import json
import shutil

import numpy as np
import pytest
from PIL import Image

from torchcaps.core import UserError
from torchcaps.models import create_model
from torchcaps.storage import save_weights, write_json, write_text
from torchcaps.train import build
from torchcaps.train.run import write_recipe

from apps.lung.ct import chest, write_series
from apps.lung.runs import untrained_run
from command import torchcaps


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return untrained_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Two patients, one nodule each, on two slices that were cut out at different places."""
    root = tmp_path_factory.mktemp("prepared")
    regions = {}
    for patient in ("a", "b"):
        for number in (0, 1):
            name = f"{patient}_{number}"
            mask = np.zeros((32, 32), np.uint8)
            mask[10 - number : 16 - number, 12:18] = 255
            for kind, pixels in (("images", mask // 2 + 40), ("masks", mask)):
                (root / kind).mkdir(exist_ok=True)
                Image.fromarray(pixels).save(root / kind / f"{name}.png")
            regions[name] = {
                "patient": patient, "nodule": 1, "slice": 7 + number, "corner": [20 + number, 30],
                "spacing_mm": [2.0, 0.5, 0.5], "diameter_mm": 7.0,
            }  # fmt: skip
    write_json(root / "manifest.json", {"format": 1, "regions": regions})
    write_text(root / "test.txt", "".join(f"{name}\n" for name in regions))
    return root


def test_an_evaluation_puts_regions_where_they_lie_in_the_scan(run, prepared, monkeypatch):
    from torchcaps.apps.lung import evaluate
    from torchcaps.train import load_run

    def perfect(network, regions):
        for region in regions:
            with Image.open(region.mask) as picture:
                mask = np.asarray(picture) > 0
            yield mask[None], mask[None]

    boxes = []

    def remember(predicted, truth, spacing):
        boxes.append(truth)
        return measure(predicted, truth, spacing)

    measure = evaluate.measure
    monkeypatch.setattr(evaluate, "_predict", perfect)
    monkeypatch.setattr(evaluate, "measure", remember)
    found = evaluate.evaluate_prepared(load_run(run), prepared)
    assert found["nodules"] == found["patients"] == 2
    assert found["all"]["dice"]["mean"] == 1
    assert found["all"]["hd95"]["mean"] == 0
    assert found["cases"][0]["volume"] == pytest.approx(2 * 36 * 2.0 * 0.5 * 0.5)
    assert list(found["by_size"]) == ["6 to 10 mm"]
    assert boxes[0].shape == (2, 33, 32)
    assert np.array_equal(boxes[0][0], boxes[0][1])  # each region moved as the nodule did on it


def test_pictures_of_a_nodule_are_measured_one_by_one(run, tmp_path, monkeypatch):
    from torchcaps.apps.lung import evaluate
    from torchcaps.apps.lung.prepare import find_patients, prepare
    from torchcaps.train import load_run

    masks = np.zeros((2, 128, 128), np.uint8)
    masks[0, 60:68, 40:48] = masks[1, 60:68, 80:88] = 255
    for patient in range(3):
        for number, mask in enumerate(masks):
            for kind in ("", "_mask"):
                Image.fromarray(mask).save(tmp_path / f"{patient}_N_{number}{kind}.png")
    prepare(find_patients(tmp_path), tmp_path / "out")

    def swapped(network, regions):
        truth = [np.asarray(Image.open(region.mask)) > 0 for region in regions]
        yield np.stack(truth[::-1]), np.stack(truth)

    monkeypatch.setattr(evaluate, "_predict", swapped)
    found = evaluate.evaluate_prepared(load_run(run), tmp_path / "out")
    assert found["region_dice"]["mean"] == found["all"]["dice"]["mean"] == 0


def test_regions_that_trained_a_run_do_not_test_it(run, prepared, tmp_path):
    root, own = tmp_path / "prepared", tmp_path / "run"
    shutil.copytree(prepared, root)
    fold = root / "splits" / "fold-a"
    write_text(fold / "train.txt", "b_0\nb_1\n")
    write_text(fold / "test.txt", "a_0\na_1\n")
    shutil.copytree(run, own)
    recipe = json.loads((own / "recipe.json").read_text())
    recipe["data"]["name"] = f"folder:{fold}"
    write_json(own / "recipe.json", recipe)
    with pytest.raises(UserError, match=r"2 of 4 regions trained this run; evaluate it on .*fold-a"):
        torchcaps("lung", "eval", own, root, "--device", "cpu", "--quiet")
    assert "1 nodule (2 regions) of 1 patient, " in torchcaps(
        "lung", "eval", own, fold, "--device", "cpu", "--quiet"
    )


def test_eval_says_dice_by_size_with_intervals(run, prepared, tmp_path):
    text = torchcaps(
        "lung", "eval", run, prepared, "--device", "cpu", "--quiet", "--out", tmp_path / "e.json"
    )
    assert "6 to 10 mm" in text
    assert "HD95 (mm)" in text
    found = json.loads((tmp_path / "e.json").read_text())
    assert found["regions"] == 4
    assert 0 <= found["all"]["dice"]["mean"] <= 1
    assert found["all"]["dice"]["low"] is not None


def test_segment_of_a_picture_gives_pixels(run, tmp_path):
    picture = tmp_path / "slice.png"
    Image.fromarray(np.full((40, 48), 90, np.uint8)).save(picture)
    out = tmp_path / "found"
    found = json.loads(torchcaps("lung", "segment", picture, "--run", run, "--out", out, "--json"))
    assert found["spacing_mm"] is None
    assert found["notice"] == "Research software, not a medical device."
    with Image.open(out / "mask.png") as picture:
        assert picture.size == (48, 40)
    assert {"nodules.csv", "page.html", "result.json"} <= {file.name for file in out.iterdir()}
    assert not (out / "mask.nii.gz").exists()


def refused(*arguments):
    """The message that the command ends with."""
    with pytest.raises(UserError) as caught:
        torchcaps(*arguments)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_bad_input_is_refused_in_one_line(run, prepared, tmp_path):
    out = tmp_path / "found"
    segment = ("lung", "segment", "--run", run, "--out", out)
    assert "no file or folder" in refused(*segment, tmp_path / "nowhere")
    (tmp_path / "notes.pdf").write_bytes(b"x")
    assert "none of" in refused(*segment, tmp_path / "notes.pdf")
    (tmp_path / "broken.nii").write_bytes(b"no volume")
    assert "cannot be read" in refused(*segment, tmp_path / "broken.nii")
    assert "not prepared" in refused("lung", "eval", run, tmp_path)
    assert "holds no run" in refused("lung", "eval", tmp_path, prepared)
    assert "must be one of" in refused("lung", "eval", run, prepared, "--part", "moon")
    assert not out.exists()


def test_a_broken_dicom_file_is_named(run, tmp_path):
    pytest.importorskip("pydicom")
    series = write_series(tmp_path / "series", chest(3, 64))
    file = series / "001.dcm"
    file.write_bytes(file.read_bytes()[:900])
    assert "001.dcm" in refused("lung", "segment", series, "--run", run, "--out", tmp_path / "found")


def test_a_volume_without_spacing_is_refused(run, tmp_path):
    nibabel = pytest.importorskip("nibabel")
    image = nibabel.Nifti1Image(np.zeros((8, 8, 8), np.int16), np.eye(4))
    image.header["pixdim"][1:4] = 0
    whole = bytearray(image.to_bytes())
    whole[80:92] = bytes(12)  # nibabel mends it while it writes
    (tmp_path / "volume.nii").write_bytes(bytes(whole))
    assert "spacing" in refused(
        "lung", "segment", tmp_path / "volume.nii", "--run", run, "--out", tmp_path / "found"
    )


def test_a_mask_of_another_size_is_named(run, prepared, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(prepared, copy)
    Image.fromarray(np.zeros((16, 32), np.uint8)).save(copy / "masks" / "a_1.png")
    assert "a_1.png" in refused("lung", "eval", run, copy)
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["regions"]["a_0"].pop("corner")
    write_json(copy / "manifest.json", manifest)
    assert "damaged at a_0" in refused("lung", "eval", run, copy)


def test_runs_that_cannot_segment_slices_are_refused(prepared, tmp_path):
    resized = untrained_run(tmp_path / "resized", preprocess={"resize": 32})
    assert "own size" in refused("lung", "eval", resized, prepared)
    alone = untrained_run(tmp_path / "alone", preprocess={"normalize": "image"})
    assert "normalises each image" in refused("lung", "eval", alone, prepared)
    recipe = build({"model": {"name": "dr_capsnet_tiny_test"}, "data": {"name": "synthetic"}, "epochs": 1})
    network = create_model("dr_capsnet_tiny_test")
    write_recipe(tmp_path / "classes", recipe)
    save_weights(tmp_path / "classes" / "weights.safetensors", network.state_dict(), {"epoch": 0})
    assert "a run of classification" in refused("lung", "eval", tmp_path / "classes", prepared)


@pytest.mark.slow
def test_from_drawn_patients_to_a_segmented_scan(tmp_path):
    """What a user does: phantom in DICOM form, prepare, train, eval, segment; all files can be read."""
    nibabel, pydicom = pytest.importorskip("nibabel"), pytest.importorskip("pydicom")
    patients, prepared, trained, found = (
        tmp_path / name for name in ("patients", "prepared", "run", "found")
    )
    torchcaps("lung", "phantom", patients, "--patients", 5, "--size", 128, "--slices", 10, "--quiet")
    torchcaps("lung", "prepare", patients, "--out", prepared, "--negatives", 0.5, "--quiet")
    torchcaps(
        "lung", "train", prepared, "--model", "segcaps_r3", "--out", trained, "--device", "cpu", "--quiet",
        *("--set", "model={name: segcaps_tiny_test, image_size: 128, reconstruction: false}"),
        *("--set", "epochs=2", "--set", "batch_size=2", "--set", "optim.learning_rate=0.01"),
    )  # fmt: skip
    evaluate = ("lung", "eval", trained, prepared, "--scans", patients, "--device", "cpu")
    assert "false marks a scan" in torchcaps(*evaluate, "--quiet")
    scores = json.loads(torchcaps(*evaluate, "--json"))
    assert scores["nodules"] == scores["scans"]["nodules"] >= 1
    assert scores["scans"]["scans"] == scores["patients"]
    series = sorted(path for path in patients.iterdir() if path.is_dir())[0]
    result = json.loads(torchcaps("lung", "segment", series, "--run", trained, "--out", found, "--json"))
    volume = nibabel.load(found / "mask.nii.gz")
    assert volume.shape == (128, 128, 10)
    assert len(np.unique(volume.dataobj)) - 1 == len(result["nodules"])
    with (found / "nodules.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == len(result["nodules"])
    assert "not a medical device" in (found / "page.html").read_text()
    for row in result["nodules"][:12]:
        with Image.open(found / f"nodule-{row['nodule']}.png") as picture:
            picture.verify()
    if result["nodules"]:
        assert pydicom.dcmread(found / "mask.dcm").Modality == "SEG"
