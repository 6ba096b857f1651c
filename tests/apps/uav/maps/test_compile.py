import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from torchcaps.apps.uav import AbBrief, BuildingRatio, CompileSettings, compile_map, open_map
from torchcaps.apps.uav.filter import learn_codebook, linear_likelihood
from torchcaps.apps.uav.maps import verify_map
from torchcaps.apps.uav.maps.compile import grid_of, known_cells, storage_loss
from torchcaps.core import UserError
from torchcaps.data import sample_crops


def test_each_voxel_has_the_descriptor_of_the_crop_at_its_centre(country):
    verify_map(country.map)
    grid = country.map.info.grid
    summer = torch.from_numpy(country.stack.dates(["summer"]).images)
    for heading, row, column in ((0, 0, 0), (5, 12, 20), (11, grid.rows - 1, grid.columns - 1)):
        x, y = grid.x_centres[column : column + 1], grid.y_centres[row : row + 1]
        centre = torch.from_numpy(country.stack.centres_of(x, y))
        angle = torch.tensor([grid.heading_centres[heading]], dtype=torch.float32)
        crop = sample_crops(summer, torch.zeros(1, dtype=torch.int64), centre, angle, 16)
        expected = country.describer(crop)[0].numpy()
        stored = country.map.descriptors
        assert np.array_equal(stored.book.decode(stored.values[heading])[row, column], expected)


def test_the_grid_covers_the_map_from_its_south_western_corner(country):
    grid = grid_of(country.stack, 30.0, 12)
    assert (grid.columns, grid.rows) == (30, 20)
    assert (grid.west, grid.south) == (country.stack.west, country.stack.north - 600)
    thirds = replace(
        country.stack, pixel=0.7
    )  # three pixels of 0.7 m are a little less than 7 cells of 0.3 m
    assert grid_of(thirds.columns(0, 3).rows(0, 3), 0.3, 12).shape == (12, 7, 7)


def test_a_map_says_how_much_ground_its_crops_show(country):
    assert country.map.info.metres == 160  # 16 pixels of 10 m


def test_the_picture_of_a_map_shows_the_ground_of_its_grid(country, tmp_path):
    summer, settings = country.stack.dates(["summer"]), replace(country.settings, cell=70.0, headings=1)
    compile_map(summer, country.describer, tmp_path / "a.tcmap", settings)
    picture = np.asarray(Image.open(tmp_path / "a.png"))
    # 12 x 8 cells; what the grid leaves out lies in the north and in the east
    assert np.array_equal(picture, np.moveaxis(summer.images[0][:, 4:, :84], 0, -1))


def test_scales_of_int8_are_learnt_on_the_voxels_of_the_map(country, tmp_path):
    summer, settings = country.stack.dates(["summer"]), CompileSettings(cell=60.0, headings=2)
    maps = {}
    for storage in ("float32", "int8"):
        path = tmp_path / f"{storage}.tcmap"
        compile_map(summer, BuildingRatio(16, rings=3), path, replace(settings, storage=storage))
        maps[storage] = open_map(path).descriptors
    exact, stored = (np.stack([each.book.decode(plane) for plane in each.values]) for each in maps.values())
    largest = np.abs(exact).max((0, 1, 2))  # the sample holds all voxels of so small a map
    assert maps["int8"].book.scales == pytest.approx(largest / 127)
    assert (np.abs(stored - exact) <= 0.501 * largest / 127).all()


def test_a_map_is_compiled_with_the_voxels_of_the_thesis():
    settings = CompileSettings()
    assert (settings.cell, settings.headings, settings.storage) == (10.0, 60, "int8")


def test_a_stopped_compilation_goes_on_where_it_ended(country, tmp_path):
    seen = []

    def stop(done, planned):
        heading, started = divmod(done, planned // 12)
        if not started:
            seen.append(heading)
        if done == 3 * planned // 12 + started and started and seen.count(3) == 1:
            raise KeyboardInterrupt  # within a heading, of which nothing is kept

    arguments = (
        country.stack.dates(["summer"]),
        country.describer,
        tmp_path / "summer.tcmap",
        country.settings,
    )
    with pytest.raises(KeyboardInterrupt):
        compile_map(*arguments, on_described=stop)
    compile_map(*arguments, on_described=stop)
    assert seen == [0, 1, 2, 3, *range(3, 12)]
    assert arguments[2].read_bytes() == country.path.read_bytes()


def test_a_stopped_compilation_does_not_go_on_with_another_map_of_the_same_name(country, tmp_path):
    def stop(done, planned):
        if done == 3 * planned // 12:
            raise KeyboardInterrupt

    right, path = country.stack.dates(["summer"]), tmp_path / "summer.tcmap"
    wrong = replace(right, images=right.images[:, ::-1].copy())  # its colours were in another order
    with pytest.raises(KeyboardInterrupt):
        compile_map(wrong, country.describer, path, country.settings, on_described=stop)
    compile_map(right, country.describer, path, country.settings)
    assert path.read_bytes() == country.path.read_bytes()


def test_several_dates_cannot_become_one_map(country, tmp_path):
    with pytest.raises(UserError, match="one date, not from 4"):
        compile_map(country.stack, country.describer, tmp_path / "a.tcmap")


def test_a_smaller_storage_loses_more_likelihood():
    vectors = np.random.default_rng(0).normal(size=(600, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    losses = [
        storage_loss(vectors, learn_codebook(vectors, storage, 4), linear_likelihood()).mean
        for storage in ("float32", "float16", "int8", "product")
    ]
    assert losses[0] == 0
    assert losses == sorted(losses)
    assert losses[2] < 0.05


def test_the_loss_of_a_storage_is_the_difference_of_logarithms():
    vectors = np.random.default_rng(0).random((300, 4), np.float32)  # none far from another
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    book = learn_codebook(vectors, "product", 2)
    kept = book.decode(book.encode(vectors[None]))[0]
    exact, rough = (
        np.log(1 - np.sqrt((2 - 2 * vectors[:64] @ each.T).clip(0)) / 2) for each in (vectors, kept)
    )
    found = storage_loss(vectors, book, linear_likelihood())
    assert found.mean == pytest.approx(np.abs(exact - rough).mean(), rel=0.01)
    assert found.largest == pytest.approx(np.abs(exact - rough).max(), rel=0.01)


def test_a_map_of_another_descriptor_is_refused(country):
    from torchcaps.apps.uav import Localizer

    with pytest.raises(UserError, match="was compiled with abbrief 32, not with abbrief 64"):
        Localizer(country.map, AbBrief(16, 64), linear_likelihood())


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"cell": 0.0}, "a cell of the grid needs a positive size"),
        ({"cell": math.nan}, "a cell of the grid needs a positive size"),
        ({"headings": 0}, "at least 1 heading, not 0"),
        ({"cell": 1e6}, "less than one cell of 1e.06 m: take a larger map"),
        ({"storage": "product", "code_bytes": 0}, "cannot be split into 0 equal groups"),
    ],
)
def test_sizes_of_a_map_that_are_none_are_refused(wrong, words, country, tmp_path):
    settings = replace(country.settings, **wrong)
    with pytest.raises(UserError, match=words):
        compile_map(country.stack.dates(["summer"]), country.describer, tmp_path / "a.tcmap", settings)


def test_a_map_does_not_take_the_name_of_its_picture(country, tmp_path):
    with pytest.raises(UserError, match=r"picture of the map .*a\.png"):
        compile_map(country.stack.dates(["summer"]), country.describer, tmp_path / "a.png", country.settings)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("side", [0, -5])
def test_crops_without_pixels_are_refused(side):
    with pytest.raises(UserError, match="abBRIEF needs crops of 1 to 10,000 pixels"):
        AbBrief(side)


def test_product_codes_that_do_not_fit_are_refused(country, tmp_path):
    with pytest.raises(UserError, match="cannot be split into 5 equal groups"):
        compile_map(
            country.stack.dates(["summer"]),
            country.describer,
            tmp_path / "a.tcmap",
            CompileSettings(cell=30.0, headings=4, storage="product", code_bytes=5),
        )
    assert not list(tmp_path.iterdir())
    assert open_map(country.path).info.model == "abbrief 32"


def test_a_map_smaller_than_a_crop_is_refused(country, tmp_path):
    small = country.stack.dates(["summer"]).columns(0, country.describer.side - 1)
    with pytest.raises(UserError, match=r"less than one crop of .* m: take a larger map"):
        compile_map(small, country.describer, tmp_path / "a.tcmap", country.settings)


@pytest.mark.parametrize("blank", ["known", "images"])  # without data, or black
def test_a_map_that_shows_no_ground_is_refused(country, tmp_path, blank):
    summer = country.stack.dates(["summer"])
    nothing = replace(summer, **{blank: np.zeros_like(getattr(summer, blank))})
    with pytest.raises(UserError, match="summer shows no ground"):
        compile_map(nothing, country.describer, tmp_path / "a.tcmap", country.settings)


def test_cells_without_data_or_black_are_no_candidates(country, tmp_path):
    summer = country.stack.dates(["summer"])
    known, images = summer.known.copy(), summer.images.copy()
    known[:, :, :30] = False  # 300 m in the west are without data, 230 m in the east are black
    images[..., 67:] = 0
    gaps = replace(summer, known=known, images=images)
    compile_map(gaps, country.describer, tmp_path / "a.tcmap", country.settings)
    opened = open_map(tmp_path / "a.tcmap")
    grid, is_known = opened.info.grid, opened.descriptors.known
    east = grid.x_centres - grid.west
    assert np.array_equal(is_known, np.tile((east > 300) & (east < 670), (grid.rows, 1)))
    assert opened.unknown_share == pytest.approx(1 - is_known.mean())
    assert country.map.descriptors.known is None


def test_a_gap_smaller_than_half_a_crop_leaves_its_cells_candidates(country):
    summer = country.stack.dates(["summer"])
    known = summer.known.copy()
    known[:, 20:30, 40:50] = False  # 100 x 100 m of a crop of 160 x 160 m
    grid = grid_of(summer, 30.0, 12)
    assert known_cells(replace(summer, known=known), grid, 16).all()
