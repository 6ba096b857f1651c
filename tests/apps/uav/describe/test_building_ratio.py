import numpy as np
import pytest
import torch

from torchcaps.apps.uav import BuildingRatio, colour_segmenter, load_describer, onnx_segmenter
from torchcaps.apps.uav.describe import building_ratio
from torchcaps.core import MissingDataError, UserError


def red_share(crops):
    return crops[:, 0]


def crops(count=5, side=24):
    return torch.rand(count, 3, side, side, generator=torch.Generator().manual_seed(0))


def test_descriptors_are_unit_vectors_of_the_shares_of_rings():
    images = torch.zeros(1, 3, 24, 24)
    images[:, 0, 10:14, 10:14] = 1  # 16 pixels, all within 3 of the middle
    found = BuildingRatio(24, rings=2, segmenter=red_share)(images)[0]
    inner = sum((x - 11.5) ** 2 + (y - 11.5) ** 2 < 36 for x in range(24) for y in range(24))
    assert found[0] == pytest.approx((16 / inner / 2) ** 0.5)
    assert found[1] == 0
    assert found.norm() == pytest.approx(1)


def test_turning_a_crop_by_a_quarter_changes_nothing():
    describer = BuildingRatio(24, segmenter=red_share)
    images = crops()
    assert torch.allclose(describer(images), describer(images.rot90(1, (2, 3))), atol=1e-5)


def test_the_dot_product_is_the_mean_bhattacharyya_coefficient():
    describer = BuildingRatio(24, rings=4, segmenter=red_share)
    one, two = describer(crops(2))
    p, q = (vector[:4] ** 2 * 4 for vector in (one, two))
    expected = ((p * q).sqrt() + ((1 - p) * (1 - q)).sqrt()).mean()
    assert one @ two == pytest.approx(expected.item(), abs=1e-6)


def test_colours_tell_a_bright_red_roof_from_a_field():
    images = torch.zeros(1, 3, 32, 32) + torch.tensor([0.3, 0.45, 0.25])[None, :, None, None]
    images[:, :, 12:18, 12:18] = torch.tensor([0.75, 0.45, 0.4])[:, None, None]
    found = colour_segmenter(images)[0]
    assert found[14, 14] > 0.8
    assert found[4, 4] < 0.1


@pytest.mark.parametrize(
    ("colour", "is_built"),
    [((0.8, 0.8, 0.8), True), ((0.9, 0.5, 0.5), True), ((0.5, 0.9, 0.3), False), ((0.5, 0.3, 0.9), False)],
)
def test_what_stands_out_is_built_where_it_is_grey_or_red(colour, is_built):
    images = torch.full((1, 3, 32, 32), 0.2)
    images[:, :, 12:18, 12:18] = torch.tensor(colour)[:, None, None]
    found = colour_segmenter(images)[0]
    assert (found[14, 14] > 0.5) == is_built
    assert found[2, 2] < 0.1  # grey ground does not stand out


def test_a_saved_baseline_is_found_again(tmp_path):
    BuildingRatio(24, rings=5).save(tmp_path)
    loaded = load_describer(tmp_path)
    assert (loaded.side, loaded.size, loaded.name) == (24, 10, "building ratio 5 colour")


@pytest.mark.parametrize("content", ['{"side": 24}', '{"side": 24, "rings": "many"}'])
def test_damaged_settings_are_an_error_that_names_the_file(content, tmp_path):
    (tmp_path / "building_ratio.json").write_text(content)
    with pytest.raises(UserError, match=r"building_ratio\.json.*rings"):
        load_describer(tmp_path)


def test_a_segmenter_comes_as_an_onnx_file(tmp_path):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper

    shape = ["batch", 3, 24, 24]
    graph = helper.make_graph(
        [helper.make_node("ReduceMean", ["crops"], ["built"], axes=[1], keepdims=1)],
        "segmenter",
        [helper.make_tensor_value_info("crops", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("built", TensorProto.FLOAT, ["batch", 1, 24, 24])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    describer = building_ratio(24, 4, path)
    describer.save(tmp_path / "run", path)
    loaded, images = load_describer(tmp_path / "run"), crops()
    expected = BuildingRatio(24, 4, segmenter=lambda crops: crops.mean(1))(images)
    assert np.allclose(loaded(images), expected, atol=1e-5)
    assert loaded.name == describer.name != BuildingRatio(24, 4).name


def test_what_cannot_be_a_segmenter_is_named(tmp_path):
    pytest.importorskip("onnxruntime")
    (tmp_path / "a.onnx").write_bytes(b"no network")
    with pytest.raises(UserError, match="no ONNX network"):
        onnx_segmenter(tmp_path / "a.onnx")
    with pytest.raises(MissingDataError, match="no network"):
        building_ratio(24, 4, tmp_path / "b.onnx")
    with pytest.raises(UserError, match="rings"):
        BuildingRatio(8, rings=5)
    with pytest.raises(UserError, match="the segmenter gave"):
        BuildingRatio(24, segmenter=lambda crops: crops)(crops())
