import errno
import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from torchcaps.apps.uav.maps import Terrain, open_maps, write_geotiff, write_seasons
from torchcaps.apps.uav.maps.maps import read_maps
from torchcaps.core import MissingDataError, UserError
from torchcaps.data import save_stack

from command import torchcaps

rasterio = pytest.importorskip("rasterio")


@pytest.fixture(scope="module")
def stack():
    return Terrain(seed=3).draw(120.0, 80.0, 2.0, ("summer", "winter"))


def test_a_map_is_read_as_it_was_written(stack, tmp_path):
    found = open_maps(write_seasons(stack, tmp_path))
    assert np.array_equal(found.images, stack.images)
    assert found.names == ("summer", "winter")
    assert (found.west, found.north, found.pixel, found.crs) == (
        stack.west,
        stack.north,
        2.0,
        "EPSG:32633",
    )
    assert found.known.all()


def test_a_map_of_more_rows_than_are_read_at_once_is_read_to_its_last(stack, tmp_path, monkeypatch):
    monkeypatch.setattr("torchcaps.apps.uav.maps.maps._ROWS", 13)  # 40 rows: three windows, and one row
    assert np.array_equal(open_maps(write_seasons(stack, tmp_path)).images, stack.images)


def test_pixels_that_a_map_fills_by_half_are_left_out(stack, tmp_path):
    write_seasons(stack.columns(0, 35).rows(0, 39), tmp_path)  # 70 by 78 m
    found = open_maps([tmp_path], pixel=4.0)
    assert (found.width, found.height) == (17, 19)


def test_a_folder_and_a_stack_give_the_same(stack, tmp_path):
    write_seasons(stack, tmp_path / "tif")
    save_stack(tmp_path / "a.npz", stack)
    folder, saved = open_maps([tmp_path / "tif"]), open_maps([tmp_path / "a.npz"])
    assert np.array_equal(folder.images, saved.images)


def test_a_stack_gets_the_ending_by_which_it_is_read(stack, tmp_path):
    write_seasons(stack, tmp_path / "tif")
    with pytest.raises(UserError, match=r"ends in \.npz"):
        torchcaps("uav", "stack", tmp_path / "tif", "--out", tmp_path / "maps")
    torchcaps("uav", "stack", tmp_path / "tif", "--out", tmp_path / "maps.npz")
    assert open_maps([tmp_path / "maps.npz"]).names == ("summer", "winter")


def test_dates_on_other_pixels_are_cut_to_the_common_ground(stack, tmp_path):
    write_geotiff(tmp_path / "a.tif", stack.images[0], (0.0, 160.0, 2.0), "EPSG:32633")
    write_geotiff(tmp_path / "b.tif", stack.images[0][:, 5:, 7:], (14.0, 150.0, 2.0), "EPSG:32633")
    found = read_maps([tmp_path / "a.tif", tmp_path / "b.tif"])
    assert (found.west, found.north) == (14, 150)
    assert np.array_equal(found.images[0], found.images[1])
    assert np.array_equal(found.images[0], stack.images[0][:, 5:, 7:])


def test_half_the_resolution_is_the_mean_of_four_pixels(stack, tmp_path):
    write_geotiff(tmp_path / "a.tif", stack.images[0], (0.0, 160.0, 2.0), "EPSG:32633")
    found = read_maps([tmp_path / "a.tif"], pixel=4.0)
    expected = stack.images[0].reshape(3, 20, 2, 30, 2).mean((2, 4))
    assert found.images.shape == (1, 3, 20, 30)
    assert np.abs(found.images[0] - expected).max() <= 1


@pytest.mark.parametrize("nothing", [0, 255])
def test_pixels_without_data_are_black_and_unknown(nothing, stack, tmp_path):
    path = tmp_path / "a.tif"
    write_geotiff(path, stack.images[0].clip(1, 254), (0.0, 160.0, 2.0), "EPSG:32633")
    with rasterio.open(path, "r+") as file:
        file.nodata = nothing
        pixels = file.read()
        pixels[:, 10:14, 20:30] = nothing
        file.write(pixels)
    found = read_maps([path])
    assert not found.known[0, 10:14, 20:30].any()
    assert found.known.sum() == found.known.size - 40
    assert not found.images[0, :, 10:14, 20:30].any()


def test_sides_that_are_no_whole_number_in_binary_lose_no_pixel(stack, tmp_path):
    write_geotiff(tmp_path / "a.tif", stack.images[0][:, :11, :11], (500_000.0, 5e6, 0.3), "EPSG:32633")
    found = read_maps([tmp_path / "a.tif"])
    assert (found.width, found.height) == (11, 11)  # 3.3 / 0.3 is a little less
    assert np.array_equal(found.images[0], stack.images[0][:, :11, :11])


@pytest.mark.parametrize(
    ("crs", "message"), [(None, "no coordinate system"), ("EPSG:4326", "not in a projection in metres")]
)
def test_a_map_without_a_projection_in_metres_is_refused(crs, message, stack, tmp_path):
    shape = {"count": 3, "height": 40, "width": 60, "dtype": "uint8"}
    place = rasterio.Affine(0.001, 0, 10, 0, -0.001, 50)
    with rasterio.open(tmp_path / "a.tif", "w", driver="GTiff", crs=crs, transform=place, **shape) as file:
        file.write(stack.images[0])
    with pytest.raises(UserError, match=message):
        read_maps([tmp_path / "a.tif"])


def write_placed(path, pixels, place, crs="EPSG:32633"):
    shape = dict(zip(("count", "height", "width"), pixels.shape, strict=True))
    with rasterio.open(path, "w", driver="GTiff", crs=crs, transform=place, dtype="uint8", **shape) as file:
        file.write(pixels)


@pytest.mark.parametrize("order", [("blue", "green", "red"), ("alpha", "red", "green", "blue")])
def test_bands_are_taken_by_their_colours(order, stack, tmp_path):
    bands = {"alpha": np.full_like(stack.images[0][0], 255)}
    bands |= dict(zip(("red", "green", "blue"), stack.images[0], strict=True))
    path = tmp_path / "a.tif"
    write_placed(path, np.stack([bands[name] for name in order]), rasterio.Affine(2, 0, 0, 0, -2, 160))
    with rasterio.open(path, "r+") as file:
        file.colorinterp = [rasterio.enums.ColorInterp[name] for name in order]
    assert np.array_equal(read_maps([path]).images[0], stack.images[0])


def test_a_map_whose_corners_are_nowhere_is_refused(stack, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write_placed(tmp_path / "a.tif", stack.images[0], None)
    with pytest.raises(UserError, match=r"not where it lies in it .* -a_ullr WEST NORTH EAST SOUTH "):
        read_maps([tmp_path / "a.tif"])


@pytest.mark.parametrize(("wide", "high"), [(1e-200, 2), (2, 1e200), (2, 80), (0.1, 1.5), (8, 0.5)])
def test_pixels_of_a_side_that_no_map_has_are_refused(wide, high, stack, tmp_path):
    write_placed(tmp_path / "a.tif", stack.images[0], rasterio.Affine(wide, 0, 0, 0, -high, 160))
    with pytest.raises(UserError, match=r"a\.tif has pixels of .* m: give the right coordinates") as caught:
        read_maps([tmp_path / "a.tif"])
    assert len(str(caught.value)) < 600


def test_maps_that_do_not_fit_into_memory_are_refused_before_they_are_read(stack, tmp_path, monkeypatch):
    monkeypatch.setattr("torchcaps.apps.uav.maps.maps.machine_memory", lambda: 19_000)
    files = write_seasons(stack, tmp_path)  # 60 x 40 pixels, 4 bytes each
    with pytest.raises(
        UserError, match=r"60 x 40 pixels on 2 dates need .* a larger --metres-per-pixel than 2,"
    ):
        read_maps(files)
    assert read_maps(files[:1]).width == 60
    assert read_maps(files, pixel=4.0).width == 30


def test_a_map_that_begins_in_another_corner_or_is_turned_shows_the_same_ground(stack, tmp_path):
    west, north, east, south = 500_000.0, 5_000_000.0, 500_120.0, 4_999_920.0
    image = stack.images[0]
    placed = {
        "south": (image[:, ::-1], rasterio.Affine(2, 0, west, 0, 2, south)),
        "east": (image[:, :, ::-1], rasterio.Affine(-2, 0, east, 0, -2, north)),
        "turned": (image.transpose(0, 2, 1), rasterio.Affine(0, 2, west, -2, 0, north)),
    }
    for name, (pixels, place) in placed.items():
        write_placed(tmp_path / f"{name}.tif", pixels, place)
        found = read_maps([tmp_path / f"{name}.tif"])
        assert (found.west, found.north, found.pixel) == (west, north, 2.0)
        difference = np.abs(found.images[0].astype(int) - image)
        assert difference.mean() < (3 if name == "turned" else 1e-9)  # GDAL smooths what it turns


def test_a_map_turned_by_some_degrees_keeps_the_size_of_its_pixels(stack, tmp_path):
    along, aside = 2 * math.cos(0.5), 2 * math.sin(0.5)
    place = rasterio.Affine(along, aside, 500_000, aside, -along, 5_000_000)
    write_placed(tmp_path / "a.tif", stack.images[0], place)
    found = read_maps([tmp_path / "a.tif"])
    assert found.pixel == pytest.approx(2)
    assert found.known.sum() == pytest.approx(40 * 60, rel=0.05)


def test_a_projection_whose_metres_are_not_those_of_the_ground_is_refused(stack, tmp_path):
    write_geotiff(tmp_path / "a.tif", stack.images[0], (2_000_000.0, 8_400_000.0, 2.0), "EPSG:3857")
    with pytest.raises(UserError, match="a metre of this ground is 2 m long"):
        read_maps([tmp_path / "a.tif"])
    write_geotiff(tmp_path / "a.tif", stack.images[0], (2_000_000.0, 2_850_000.0, 2.0), "EPSG:3857")
    with pytest.raises(UserError, match=r"a metre of this ground is 1\.1 m long"):
        read_maps([tmp_path / "a.tif"])
    squeezed = "+proj=eqc +lat_ts=60 +datum=WGS84 +units=m"  # along the equator alone
    write_geotiff(tmp_path / "a.tif", stack.images[0], (1_000_000.0, 1000.0, 2.0), squeezed)
    with pytest.raises(UserError, match=r"a metre of this ground is 0\.5 m long"):
        read_maps([tmp_path / "a.tif"])
    write_geotiff(tmp_path / "b.tif", stack.images[0], (4_321_000.0, 3_210_000.0, 2.0), "EPSG:3035")
    assert read_maps([tmp_path / "b.tif"]).pixel == 2


@pytest.mark.parametrize("pixel", [0.0, -1.0, float("nan"), float("inf")])
def test_metres_per_pixel_that_are_none_are_refused(pixel, stack, tmp_path):
    write_geotiff(tmp_path / "a.tif", stack.images[0], (0.0, 160.0, 2.0), "EPSG:32633")
    with pytest.raises(UserError, match="positive number of metres per pixel"):
        read_maps([tmp_path / "a.tif"], pixel)


def test_a_photograph_is_refused_as_a_map_in_one_line(tmp_path):
    Image.new("RGB", (20, 20)).save(tmp_path / "photo.png")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserError, match="no coordinate system"):
            open_maps([tmp_path / "photo.png"])


def test_files_that_are_no_map_are_named(stack, tmp_path):
    (tmp_path / "a.tif").write_bytes(b"no tiff")
    with pytest.raises(UserError, match=r"a\.tif is no GeoTIFF"):
        open_maps([tmp_path / "a.tif"])
    with pytest.raises(MissingDataError, match=r"no map at .*b\.tif"):
        open_maps([tmp_path / "b.tif"])
    write_geotiff(tmp_path / "c.tif", stack.images[0][:1], (0.0, 160.0, 2.0), "EPSG:32633")
    with pytest.raises(UserError, match="three bands"):
        open_maps([tmp_path / "c.tif"])


def test_maps_of_different_places_are_refused(stack, tmp_path):
    for name, west in (("a", 0.0), ("b", 9000.0)):
        write_geotiff(tmp_path / f"{name}.tif", stack.images[0], (west, 160.0, 2.0), "EPSG:32633")
    with pytest.raises(UserError, match="no common ground"):
        read_maps([tmp_path / "a.tif", tmp_path / "b.tif"])


def test_a_larger_terrain_continues_a_smaller_one():
    small, large = (Terrain(seed=1).draw(side, side, 5.0) for side in (300.0, 500.0))
    assert np.array_equal(large.images[:, :, :60, :60], small.images)


def test_a_terrain_is_the_same_at_any_resolution():
    fine, coarse = (Terrain(seed=1).draw(30.0, 300.0, pixel, ("summer",)).images for pixel in (1.0, 3.0))
    assert np.array_equal(fine[:, :, 1::3, 1::3], coarse)  # whose middles are those of every third pixel


def test_noise_of_a_terrain_is_smooth_and_between_its_bounds():
    x, y = np.meshgrid(np.arange(0, 400, 0.5), np.arange(0, 30, 0.5))
    noise = Terrain(seed=1)._noise(x, y, 10.0, 3)
    assert -1 <= noise.min() < -0.9
    assert 0.9 < noise.max() <= 1
    steepest = 2 * 1.5 / 10  # of a smooth step between -1 and 1 over 10 m
    assert all(np.abs(np.diff(noise, axis=axis)).max() <= 0.5 * steepest for axis in (0, 1))


def test_a_border_comes_a_metre_nearer_for_each_metre_towards_it():
    x, y = np.meshgrid(np.arange(0, 500, 1.0), np.arange(0, 50, 1.0))
    _, border = Terrain(seed=1)._cells(x, y, 160.0, 1)
    steps = np.hypot(np.diff(border, axis=0)[:, :-1], np.diff(border, axis=1)[:-1])
    assert 0.9 < np.percentile(steps, 99) <= 1.01


@pytest.mark.parametrize("size", [(100.0, 100.0, 0.0), (math.nan, 100.0, 2.0), (100.0, 100.0, -1.0)])
def test_a_terrain_without_pixels_is_refused(size):
    with pytest.raises(UserError, match="has no pixel of"):
        Terrain().draw(*size)


def test_terrains_differ_by_seed_and_seasons():
    one, two = (Terrain(seed=seed).draw(400.0, 400.0, 5.0) for seed in (1, 2))
    assert (one.images != two.images).mean() > 0.5
    winter, summer = one.images[3].astype(float), one.images[1].astype(float)
    assert winter.mean() > summer.mean() + 20


def test_a_map_that_cannot_be_written_leaves_the_one_before(stack, tmp_path, monkeypatch):
    path, corner = tmp_path / "a.tif", (0.0, 160.0, 2.0)
    write_geotiff(path, stack.images[0], corner, "EPSG:32633")
    before = path.read_bytes()

    def fail(draft, content):
        draft.open("wb").close()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(UserError, match="No space left on device; what was there before is kept"):
        write_geotiff(path, stack.images[0], corner, "EPSG:32633")
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["a.tif"]


def test_a_map_that_ends_too_early_is_named(stack, tmp_path):
    write_placed(tmp_path / "a.tif", stack.images[0], rasterio.Affine(2, 0, 500_000, 0, -2, 5_000_000))
    content = (tmp_path / "a.tif").read_bytes()
    (tmp_path / "a.tif").write_bytes(content[: len(content) // 2])
    with pytest.raises(UserError, match=r"a\.tif is damaged or ends too early; get it again"):
        read_maps([tmp_path / "a.tif"])


def test_bands_of_other_kinds_are_refused_with_a_command_that_can_be_typed(stack, tmp_path):
    path = tmp_path / "my map.tif"
    write_geotiff(path, stack.images[0].astype(np.uint16), (0.0, 160.0, 2.0), "EPSG:32633")
    with pytest.raises(
        UserError, match=r"bands of uint16, not of bytes: .* LOW HIGH 1 255 '.*my map\.tif' 'my map-"
    ):
        read_maps([path])
    write_geotiff(path, stack.images[0][:2], (0.0, 160.0, 2.0), "EPSG:32633")
    with pytest.raises(UserError, match=r"three bands of bytes \(RGB\), it has 2"):
        read_maps([path])
    write_placed(path, stack.images[0], rasterio.Affine(2, 0, 0, 0, -2, 160), crs=None)
    with pytest.raises(UserError, match=r"-a_srs EPSG:CODE '.*my map\.tif'$"):
        read_maps([path])


def test_a_map_far_coarser_or_smaller_than_what_is_asked_is_refused(stack, tmp_path):
    write_geotiff(tmp_path / "a.tif", stack.images[0], (0.0, 160.0, 2.0), "EPSG:32633")
    with pytest.raises(UserError, match=r"a\.tif has pixels of 2 m and cannot be read at 0\.4 m"):
        read_maps([tmp_path / "a.tif"], pixel=0.4)
    with pytest.raises(UserError, match=r"a\.tif is smaller than one pixel of 500 m"):
        read_maps([tmp_path / "a.tif"], pixel=500.0)
