import pytest

from torchcaps.apps.uav import Terrain, train_descriptor
from torchcaps.core import UserError
from torchcaps.data import PlacePlan, write_map_folder
from torchcaps.train import Machine, load_recipe


class Stopped(Exception):  # noqa: N818  it is no error
    """Raised where the training would begin."""


def stop(dataset):
    raise Stopped(dataset)


@pytest.fixture(scope="module")
def stacks():
    return [Terrain(seed=seed).draw(200.0, 100.0, 10.0, ("summer",)) for seed in (1, 2)]


def test_maps_whose_writing_was_cut_off_are_written_when_the_run_goes_on(stacks, tmp_path):
    write_map_folder(tmp_path / "maps", stacks[:1], PlacePlan())
    (tmp_path / "maps" / "places.json").unlink()  # which is written last
    with pytest.raises(Stopped):
        train_descriptor(stacks, tmp_path, stop, plan=PlacePlan(places=7), resume=True)
    assert sorted(path.name for path in (tmp_path / "maps").iterdir()) == [
        "map-0.npz",
        "map-1.npz",
        "places.json",
    ]


def test_maps_of_a_call_that_failed_do_not_train_in_the_next(stacks, tmp_path):
    with pytest.raises(Stopped):
        train_descriptor(stacks, tmp_path, stop)
    with pytest.raises(UserError, match=r"holds map-1\.npz too"):
        train_descriptor(stacks[:1], tmp_path, stop)


def test_a_descriptor_may_start_from_a_pretrained_network_by_its_name(stacks, tmp_path):
    def misspelt(data):
        return load_recipe(
            "retrieval/uav_fcn", changes={"data.name": data, "start_from": "dr_capsnet_minimal.mnst"}
        )

    with pytest.raises(UserError, match=r"did you mean dr_capsnet_minimal\.mnist"):
        train_descriptor(stacks, tmp_path, misspelt, machine=Machine(device="cpu"))
