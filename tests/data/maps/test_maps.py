import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from torchcaps.core import UserError
from torchcaps.data import (
    PlacePlan,
    SeasonStack,
    check_dataset,
    load_dataset,
    load_stack,
    sample_crops,
    save_stack,
    write_map_folder,
)
from torchcaps.data.api import Frame
from torchcaps.data.maps.crops import MapImages
from torchcaps.data.maps.places import PlacedCrops, open_map_folder
from torchcaps.train.tasks import task_named

PLAN = PlacePlan(places=30, views=6, offset=10.0)


def made_stack(dates=3, height=90, width=240):
    images = np.random.default_rng(0).integers(0, 256, (dates, 3, height, width)).astype(np.uint8)
    known = np.ones((dates, height, width), bool)
    return SeasonStack(
        images, known, tuple(f"date {k}" for k in range(dates)), 500.0, 9000.0, 5.0, "EPSG:32614"
    )


def crop(stack, x, y, heading, side=9, date=0):
    centre = torch.from_numpy(stack.centres_of(np.array([x], float), np.array([y], float)))
    images = torch.from_numpy(stack.images)
    return sample_crops(images, torch.tensor([date]), centre, torch.tensor([heading]), side)[0]


def test_a_stack_is_read_as_it_was_written(tmp_path):
    stack = made_stack()
    stack.known[1, 3:9, 5] = False
    save_stack(tmp_path / "a.npz", stack)
    read = load_stack(tmp_path / "a.npz")
    assert np.array_equal(read.images, stack.images)
    assert np.array_equal(read.known, stack.known)
    assert (read.names, read.crs, read.west, read.north, read.pixel) == (
        stack.names,
        stack.crs,
        stack.west,
        stack.north,
        stack.pixel,
    )


def test_a_foreign_or_damaged_stack_is_named(tmp_path):
    save_stack(tmp_path / "a.npz", made_stack())
    data = (tmp_path / "a.npz").read_bytes()
    for bad in (b"", b"no zip", data[: len(data) // 2]):
        (tmp_path / "b.npz").write_bytes(bad)
        with pytest.raises(UserError, match=r"b\.npz is no season stack"):
            load_stack(tmp_path / "b.npz")


@pytest.mark.parametrize(
    "wrong",
    [
        {"known": np.zeros(4)},
        {"known": np.zeros(4, np.uint8)},  # the rest would count as unknown
        {"names": np.array(5)},
        {"names": np.array([0.5, 1.5, 2.5, 3.5])},
        {"corner": np.zeros((2, 2))},
        {"corner": np.full(3, np.nan)},
        {"crs": np.zeros(3)},
        {"images": np.zeros((4, 1, 8, 8), np.uint8)},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_stack_with_an_array_of_another_form_is_named(tmp_path, wrong):
    path = tmp_path / "a.npz"
    save_stack(path, made_stack())
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **{**arrays, **wrong})
    with pytest.raises(UserError, match=r"a\.npz is (no season stack|damaged)"):
        load_stack(path)


def test_a_part_of_a_map_shows_the_same_ground_at_the_same_place():
    stack = made_stack()
    part = stack.columns(40, 200).rows(20, 70)
    assert (part.width, part.height) == (160, 50)
    x, y = 500 + 5 * 100.5, 9000 - 5 * 45.5
    assert torch.equal(crop(part, x, y, math.pi / 2), crop(stack, x, y, math.pi / 2))
    with pytest.raises(UserError, match="rows 20 to 91"):
        stack.rows(20, 91)


def test_a_crop_to_the_north_is_a_window_of_the_map():
    stack = made_stack()
    found = crop(stack, 500 + 5 * 20.5, 9000 - 5 * 30.5, math.pi / 2)
    assert torch.allclose(found * 255, torch.from_numpy(stack.images)[0, :, 26:35, 16:25].float(), atol=1e-3)


def test_a_crop_to_the_east_has_the_east_on_top():
    stack = made_stack()
    north = crop(stack, 700, 8800, math.pi / 2)
    east = crop(stack, 700, 8800, 0.0)
    assert torch.allclose(east, north.rot90(1, (1, 2)), atol=1e-5)


def test_crops_agree_with_grid_sample_and_are_black_outside():
    stack, side = made_stack(), 24
    images = torch.from_numpy(stack.images)
    rng = torch.Generator().manual_seed(1)
    centres = torch.rand(8, 2, generator=rng) * torch.tensor([260.0, 110.0]) - 10
    headings = torch.rand(8, generator=rng) * 7
    found = sample_crops(images, torch.full((8,), 2), centres, headings, side)
    axis = (side - 1) / 2 - torch.arange(side)
    ahead, left = axis[:, None], axis[None, :]
    for k in range(8):
        cos, sin = headings[k].cos(), headings[k].sin()
        column = centres[k, 0] + ahead * cos - left * sin
        row = centres[k, 1] - ahead * sin - left * cos
        grid = torch.stack([(2 * column + 1) / 240 - 1, (2 * row + 1) / 90 - 1], -1)[None]
        expected = F.grid_sample(images[2:3].float() / 255, grid, align_corners=False)
        assert torch.allclose(found[k : k + 1], expected, atol=1e-4)


def test_a_crop_is_the_same_alone_and_among_others():
    """Alone it is read byte by byte, among others of its date it is cut out of a window of the map."""
    images = torch.from_numpy(made_stack(width=900, height=500).images)
    rng = torch.Generator().manual_seed(2)
    centres = torch.rand(60, 2, generator=rng) * torch.tensor([950.0, 550.0]) - 25
    centres[:4] = torch.tensor([[-80.0, 20.0], [990.0, 20.0], [100.0, -60.0], [100.0, 600.0]])
    headings, dates = torch.rand(60, generator=rng) * 7, torch.arange(60) % 3
    found = sample_crops(images, dates, centres, headings, 24)
    corners = torch.tensor([[0.0, 0.0], [899.0, 499.0]])  # so far apart that a window is not worth it
    for k in range(60):
        alone = sample_crops(
            images, dates[k].expand(3), torch.cat([centres[k : k + 1], corners]), headings[k].expand(3), 24
        )
        assert torch.allclose(found[k], alone[0], atol=1e-4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("maps")
    write_map_folder(root, [made_stack(), made_stack(dates=2, width=200)], PLAN)
    return root


def ground(examples):
    """West and east edge of the ground that the crops of each map show."""
    views = examples.images.views
    reach = examples.images.side / math.sqrt(2)
    return {
        number: (
            float(views.centres[views.maps == number, 0].min()) - reach,
            float(views.centres[views.maps == number, 0].max()) + reach,
        )
        for number in views.maps.unique().tolist()
    }


def test_training_validation_and_test_show_different_ground(folder):
    whole, test = (
        load_dataset(f"folder:{folder}", split, size=12, task="retrieval") for split in ("train", "test")
    )
    assert isinstance(whole, PlacedCrops)
    train, validation = task_named("retrieval").split(whole, 0.3, 0)
    assert len(train)
    assert len(validation)
    for number, (_, east) in ground(train).items():
        assert east <= ground(validation)[number][0] + 1e-3
        assert ground(whole)[number][1] <= ground(test)[number][0] + 1e-3
    assert not set(train.places.tolist()) & set(validation.places.tolist())


def test_views_of_a_place_are_near_it_and_of_all_dates(folder):
    whole = load_dataset(f"folder:{folder}", "train", size=12, task="retrieval")
    assert len(whole) == 30 * 6
    views = whole.images.views
    for place in range(30):
        rows = whole.places == place
        centres = views.centres[rows]
        assert torch.cdist(centres, centres).max() <= 2 * PLAN.offset / 5 + 1e-3
        assert len(set(views.dates[rows].tolist())) == (3 if views.maps[rows][0] == 0 else 2)


def drawn(root, plan, stacks, split="train", side=12):
    write_map_folder(root, stacks, plan)
    return load_dataset(f"folder:{root}", split, size=side, task="retrieval")


def test_views_lie_aside_and_turned_as_far_as_the_plan_says(tmp_path):
    """Distances are even up to the offset, which is 8 pixels of 5 m; turns are normal."""
    plan = PlacePlan(places=20, views=200, offset=40.0, rotation=6.0)
    views = drawn(tmp_path, plan, [made_stack()]).images.views
    centres = views.centres.view(20, 200, 2).double()
    apart = (centres[:, :100] - centres[:, 100:]).square().sum(-1).mean()
    assert apart == pytest.approx(2 * 8.0**2 / 3, rel=0.1)  # twice the mean square of even distances
    turns = views.headings.view(20, 200).double()
    assert math.degrees(turns.std(1).square().mean().sqrt()) == pytest.approx(6, rel=0.05)
    means = turns.mean(1)  # places look to all sides
    assert means.min() < 1.5
    assert means.max() > 2 * math.pi - 1.5


def test_offset_and_rotation_are_those_of_the_thesis_by_default():
    assert (PlacePlan().offset, PlacePlan().rotation) == (35, 6)


def test_crops_reach_the_edges_of_their_part_of_the_map_and_do_not_leave_it(tmp_path):
    """Of 240 columns 192 train; a view keeps half a diagonal from the edges, its place 2 pixels more."""
    plan, reach = PlacePlan(places=400, views=2, offset=10.0), 12 / math.sqrt(2)
    for split, west, east in (("train", 0, 192), ("test", 192, 240)):
        column, row = drawn(tmp_path / split, plan, [made_stack()], split).images.views.centres.T
        assert west + reach <= column.min() < west + reach + 2.5
        assert east - reach - 2.5 < column.max() <= east - reach
        assert reach <= row.min() < reach + 2.5
        assert 90 - reach - 2.5 < row.max() <= 90 - reach


def test_validation_takes_its_share_in_the_east_and_no_ground_of_training_crops(tmp_path):
    """Of 192 columns with places 30 % are in the east; crops of 12 pixels reach 8.5 to each side."""
    whole = drawn(tmp_path, PlacePlan(places=600, views=2, offset=10.0), [made_stack()])
    train, validation = task_named("retrieval").split(whole, 0.3, 0)
    (_, east), (west, _) = ground(train)[0], ground(validation)[0]
    assert west - 2 < east <= west + 1e-3
    assert len(validation) / len(whole) == pytest.approx(0.3, abs=0.03)


@pytest.mark.parametrize(("share", "part"), [(0.01, "validate"), (0.99, "train")])
def test_a_split_that_leaves_no_place_says_to_which_part(tmp_path, share, part):
    whole = drawn(tmp_path, PlacePlan(places=3, views=20, offset=10.0), [made_stack()])
    with pytest.raises(UserError, match=f"no place is left to {part}, .* take more places"):
        task_named("retrieval").split(whole, share, 0)


def test_larger_maps_have_more_places_and_those_that_test_are_others(tmp_path):
    plan = PlacePlan(places=500, views=2, offset=10.0)
    stacks = [made_stack(width=160), made_stack(width=480)]
    train, test = (drawn(tmp_path, plan, stacks, split) for split in ("train", "test"))
    assert float((train.images.views.maps == 1).double().mean()) == pytest.approx(0.75, abs=0.06)
    assert set(train.places.tolist()) == set(range(500))
    assert set(test.places.tolist()) == set(range(500, 600))


def test_crops_are_the_same_each_time_and_in_any_order(folder):
    first, again = (load_dataset(f"folder:{folder}", "train", size=12, task="retrieval") for _ in range(2))
    order = torch.tensor([5, 100, 2])
    assert torch.equal(first.images[order], again.images[:][order])
    assert torch.equal(first.subset([5, 100]).images[:], again.images[order[:2]])


@pytest.mark.parametrize("most", [7, 60, 180, 500])
def test_a_sample_is_spread_over_the_views_and_never_larger_than_asked(folder, most):
    content = open_map_folder(folder, Frame(12, 12))
    whole, found = content.examples("train").images[:], content.sample(most)
    assert most / 2 <= len(found) <= most or len(found) == len(whole)
    for image, number in ((found[0], 0), (found[-1], (len(found) - 1) * -(-180 // most))):
        assert (image.int() - whole[number].int()).abs().max() <= 1  # cut out alone, or among others


def test_images_are_the_nearest_bytes_of_their_crops(folder):
    images = load_dataset(f"folder:{folder}", "train", size=12, task="retrieval").images
    views = images.views.at((images.views.maps == 0).nonzero()[:40, 0])
    exact = 255 * sample_crops(images.maps[0], views.dates, views.centres, views.headings, 12)
    found = MapImages(images.maps, views, 12)[:]
    assert (found - exact).abs().max() <= 0.51


def test_a_check_reads_the_maps_of_a_folder(folder, tmp_path):
    assert check_dataset(f"folder:{folder}@16") == []
    (tmp_path / "map.npz").write_bytes(b"no map")
    with pytest.raises(UserError, match="is no season stack, or damaged"):
        check_dataset(f"folder:{tmp_path}")


def test_places_lie_where_all_dates_show_the_ground(tmp_path):
    stack = made_stack()
    stack.known[2, :, 60:150] = False
    plan = PlacePlan(places=200, views=2, offset=10.0)
    column = drawn(tmp_path, plan, [stack]).images.views.centres[:, 0]
    # half a diagonal of 8.5 pixels, of which 2 may be missing; views lie 2 aside
    assert ((column < 60 - 4.5) | (column > 150 + 3.5)).all()
    assert (column < 60).any()
    assert (column > 150).any()


@pytest.mark.parametrize("is_black", [False, True])
@pytest.mark.parametrize(("missing", "is_shown"), [(0, True), (12, True), (13, False)])
def test_a_tenth_of_the_ground_around_a_place_may_be_missing(missing, is_shown, is_black):
    stack = made_stack()
    square = np.zeros((11, 11), bool)  # five pixels to each side
    square.flat[:missing] = True
    if is_black:  # as in the corners of a turned map that names no value for missing data
        stack.images[1, :, 30:41, 70:81] *= ~square
    else:
        stack.known[1, 30:41, 70:81] = ~square
    assert stack.shows(np.array([[75.0, 35.0]]), 5.0).tolist() == [is_shown]


def test_ground_beyond_the_edge_of_a_map_does_not_count():
    stack = made_stack()
    stack.known[:, 10:], stack.known[:, :, 20:] = False, False
    corner, beside = [0.0, 0.0], [25.0, 0.0]
    assert stack.shows(np.array([corner, beside]), 4.0).tolist() == [True, False]


def test_a_map_that_is_too_small_for_its_crops_is_refused(folder):
    with pytest.raises(UserError, match="too small for crops of 100"):
        load_dataset(f"folder:{folder}", "train", size=100, task="retrieval")
