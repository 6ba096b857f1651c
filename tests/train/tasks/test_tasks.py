"""Each task keeps the contract, and its metrics are exact on cases made by hand."""

import pytest
import torch
from PIL import Image

from torchcaps.core import (
    CapsuleOutput,
    DescriptorOutput,
    PoseOutput,
    PoseTarget,
    SegmentationOutput,
    UserError,
)
from torchcaps.data import (
    LabelledImages,
    MaskedImages,
    OverlaidImages,
    PlacedImages,
    PosedImages,
    dataset_info,
)
from torchcaps.losses import LOSSES, SpreadRotationLoss, reconstruction_loss
from torchcaps.models import create_model
from torchcaps.train import LossSettings, Machine, Objective, build, train
from torchcaps.train.loop import Session
from torchcaps.train.machine import launch
from torchcaps.train.tasks import TASKS, predicted_masks, task_named

from tasks.contract import TaskContract


def meter(task, examples, loss):
    return task_named(task).meter(
        examples, Objective(LossSettings(task_loss=LOSSES[loss]()), has_decoder=False)
    )


def seeded():
    return torch.Generator().manual_seed(0)


def blank(count, channels=1, side=2):
    return torch.zeros(count, channels, side, side, dtype=torch.uint8)


class TestClassification(TaskContract):
    recipe = {
        "model": {"name": "dr_capsnet_tiny_test", "image_size": 28, "num_classes": 10, "decoder": "none"},
        "data": {"name": "synthetic_mnist", "limit": 40, "validation": 0.2, "augment": {"shift": 2}},
        "batch_size": 16,
        "epochs": 2,
    }

    def test_metrics_by_hand(self):
        right = torch.tensor([[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.1, 0.8, 0.0], [0.3, 0.1, 0.2]])
        labels = torch.tensor([0, 0, 1, 2])
        found = meter("classification", LabelledImages(blank(4), labels, tuple("abc")), "margin")
        found.add(CapsuleOutput(right, torch.zeros(4, 3, 1)), labels, torch.zeros(4, 1, 2, 2))
        metrics, tables = found.metrics()
        assert metrics == {"accuracy": 0.5}
        assert tables["confusion"] == [[1, 1, 0], [0, 1, 0], [1, 0, 0]]
        assert tables["class_accuracy"] == {"a": 0.5, "b": 1.0, "c": 0.0}

    def test_the_runner_up_and_the_margin_are_told(self):
        outputs = {"activations": torch.tensor([[0.2, 0.9, 0.85] + [0.0] * 7])}
        info = dataset_info("synthetic_mnist")
        answer = task_named("classification").answer(outputs, info, Image.new("L", (4, 4)))
        assert answer.row["class"] == "1"
        assert answer.row["runner_up"] == "2"
        assert answer.row["margin"] == pytest.approx(0.05)


class TestOverlap(TaskContract):
    recipe = {
        "model": {"name": "dr_capsnet_multimnist", "stem_channels": 4, "primary_types": 2, "class_pose": 6},
        "data": {
            "name": "multimnist:base=synthetic_mnist,train=60,test=20",
            "validation": 0.2,
            "augment": {"shift": 2},
        },
        "batch_size": 16,
        "epochs": 2,
    }

    def test_metrics_by_hand(self):
        labels = torch.tensor([[0, 1], [2, 0], [1, 2], [0, 3]])
        alone = torch.zeros(4, 2, 2, 2, dtype=torch.uint8)
        found = meter("overlap", OverlaidImages(blank(4), labels, alone, tuple("abcd")), "pair_margin")
        said = torch.tensor([[0.9, 0.8, 0, 0], [0.1, 0.9, 0.8, 0], [0, 0.7, 0.9, 0.1], [0, 0.5, 0.6, 0.1]])
        found.add(CapsuleOutput(said, torch.zeros(4, 4, 1)), labels, torch.zeros(4, 1, 2, 2))
        metrics, _ = found.metrics()
        assert metrics == {"pair_accuracy": 0.5, "digit_accuracy": 5 / 8}

    def test_a_decoder_is_refused(self):
        model = create_model("dr_capsnet_multimnist", decoder="fc", stem_channels=2, primary_types=1)
        with pytest.raises(UserError, match=r"would draw one of two objects; set model\.decoder=none"):
            task_named("overlap").check_model(model, dataset_info("synthetic_mnist"))

    def test_the_two_strongest_classes_are_told(self):
        outputs = {"activations": torch.tensor([[0.2, 0.9, 0.85] + [0.0] * 7])}
        answer = task_named("overlap").answer(
            outputs, dataset_info("synthetic_mnist"), Image.new("L", (4, 4))
        )
        assert answer.row["classes"] == ["1", "2"]


class TestSegmentation(TaskContract):
    recipe = {
        "model": {"name": "segcaps_tiny_test", "image_size": 16, "reconstruction": False},
        "data": {
            "name": "synthetic_masks",
            "limit": 24,
            "validation": 0.25,
            "augment": {"rotation": 20, "flip": True},
        },
        "optim": {"learning_rate": 3e-3},
        "batch_size": 6,
        "epochs": 2,
    }

    def test_metrics_by_hand(self):
        masks = torch.tensor([[[[1, 1], [0, 2]]]], dtype=torch.uint8)
        found = meter("segmentation", MaskedImages(blank(1), masks, ("a", "b")), "dice_cross_entropy")
        activations = torch.tensor([[[[0.9, 0.2], [0.6, 0.1]], [[0.1, 0.1], [0.1, 0.8]]]])
        found.add(SegmentationOutput(activations), masks[:, 0], torch.zeros(1, 1, 2, 2))
        metrics, tables = found.metrics()  # class 1: one hit, one missed, one too many; class 2: right
        assert tables["classes"]["a"] == {"dice": 0.5, "iou": pytest.approx(1 / 3), "pixel_accuracy": 0.5}
        assert tables["classes"]["b"] == {"dice": 1.0, "iou": 1.0, "pixel_accuracy": 1.0}
        assert metrics["dice"] == 0.75
        assert metrics["iou"] == pytest.approx(2 / 3)
        assert metrics["pixel_accuracy"] == 0.5

    def test_a_class_that_is_nowhere_does_not_count(self):
        masks = torch.tensor([[[[1, 1], [0, 0]]]], dtype=torch.uint8)
        found = meter("segmentation", MaskedImages(blank(1), masks, ("a", "b")), "dice_cross_entropy")
        activations = torch.tensor([[[[0.9, 0.9], [0.1, 0.1]], [[0.1, 0.1], [0.1, 0.1]]]])
        found.add(SegmentationOutput(activations), masks[:, 0], torch.zeros(1, 1, 2, 2))
        metrics, tables = found.metrics()
        assert metrics["dice"] == 1.0
        assert tables["classes"]["b"]["dice"] is None

    def test_where_nothing_is_to_be_found_and_nothing_is_found_dice_is_zero(self):
        masks = torch.zeros(1, 1, 2, 2, dtype=torch.uint8)
        found = meter("segmentation", MaskedImages(blank(1), masks, ("a",)), "dice_cross_entropy")
        found.add(SegmentationOutput(torch.full((1, 1, 2, 2), 0.1)), masks[:, 0], torch.zeros(1, 1, 2, 2))
        assert found.metrics()[0] == {"dice": 0.0, "iou": 0.0, "pixel_accuracy": 1.0}

    def test_a_decoder_should_draw_what_lies_inside_the_masks(self, monkeypatch):
        """Capsules outside them are blanked before it (LaLonde 2018): it cannot know the rest."""
        model = {**self.recipe["model"], "reconstruction": True}
        plain = {**self.recipe["data"], "augment": {}}
        values = {**self.recipe, "model": model, "data": plain, "loss": {"reconstruction": 0.01}}
        session, wanted = Session(launch(Machine(device="cpu")), build(values), None), []

        def spy(reconstruction, images):
            wanted.append(images)
            return reconstruction_loss(reconstruction, images)

        monkeypatch.setattr("torchcaps.train.objective.reconstruction_loss", spy)
        indices, splits = next(session.epoch(0)), session.splits
        session.step(indices)
        session.evaluate(splits.validation)
        train, validation = splits.train, splits.validation
        for data, chosen, found in ((train, indices, wanted[0]), (validation, slice(None), wanted[1])):
            inside = data.images[chosen] / 255 * (data.masks[chosen] > 0)
            torch.testing.assert_close(found, inside)

    def test_below_one_half_is_background(self):
        activations = torch.tensor([[[[0.49, 0.5, 0.5]], [[0.2, 0.2, 0.6]]]])
        assert predicted_masks(activations).tolist() == [[[0, 1, 2]]]

    def test_the_mask_of_an_answer_has_the_size_of_the_picture(self):
        info = dataset_info("synthetic_masks", size=16)
        outputs = {"activations": torch.ones(1, 1, 16, 16)}
        answer = task_named("segmentation").answer(outputs, info, Image.new("L", (40, 20)))
        assert answer.pictures["mask"].size == answer.pictures["overlay"].size == (40, 20)
        assert answer.row["share"] == {"object": 0.5}  # the crop saw the middle half

    def test_an_overlay_outlines_the_object_and_tints_its_inside(self):
        info = dataset_info("synthetic_masks", size=16)
        outputs = {"activations": torch.zeros(1, 1, 16, 16)}
        outputs["activations"][..., 4:9, 4:9] = 1
        answer = task_named("segmentation").answer(outputs, info, Image.new("RGB", (16, 16), (100, 100, 100)))
        colour = answer.pictures["mask"].convert("RGB").getpixel((5, 5))
        overlay = answer.pictures["overlay"]
        for place in ((4, 6), (8, 6), (6, 4), (6, 8)):  # the border: left, right, above and below
            assert overlay.getpixel(place) == colour
        for place in ((5, 5), (5, 7), (7, 5), (7, 7)):
            assert overlay.getpixel(place) not in (colour, (100, 100, 100))
        assert overlay.getpixel((2, 2)) == (100, 100, 100)


class TestPose(TaskContract):
    recipe = {
        "model": {"name": "pose_convnet_tiny_test", "image_size": 28, "num_classes": 2},
        "data": {"name": "synthetic_poses", "limit": 40, "validation": 0.2},
        "batch_size": 12,
        "epochs": 2,
    }

    def test_metrics_by_hand(self):
        half = torch.tensor([0.5]).sqrt().item()
        true = torch.tensor([[1.0, 0, 0, 0]] * 3)
        labels = torch.tensor([0, 1, 0])
        found = meter("pose", PosedImages(blank(3), labels, true, ("a", "b")), "spread_rotation")
        turned = torch.tensor(
            [[-1.0, 0, 0, 0], [half, half, 0, 0], [0.5, 0, 0, 0.75**0.5]]
        )  # 0, 90, 120 degrees
        rotations = torch.tensor([0.0, 0, 1, 0]).repeat(3, 2, 1)  # of classes that do not win
        rotations[range(3), [0, 1, 1]] = turned
        output = PoseOutput(torch.tensor([[0.9, 0.1], [0.1, 0.9], [0.2, 0.6]]), rotations)
        found.add(output, PoseTarget(labels, true), torch.zeros(3, 1, 2, 2))
        metrics, _ = found.metrics()
        assert metrics["rotation_error"] == pytest.approx(90)
        assert metrics["rotation_error_mean"] == pytest.approx(70)
        assert metrics["rotation_error_95"] == pytest.approx(117)
        assert metrics["symmetric_error"] == metrics["rotation_error"]  # no symmetry is known
        assert metrics["accuracy"] == pytest.approx(2 / 3)

    def test_a_known_symmetry_is_forgiven_in_the_symmetric_error_alone(self):
        true, labels = torch.tensor([[1.0, 0, 0, 0]]), torch.tensor([0])
        loss = LossSettings(task_loss=SpreadRotationLoss(symmetries=("cube", "none")))
        examples = PosedImages(blank(1), labels, true, ("a", "b"))
        found = task_named("pose").meter(examples, Objective(loss, has_decoder=False))
        quarter = torch.tensor([0.5, 0.5, 0, 0]).sqrt().expand(1, 2, 4)
        found.add(
            PoseOutput(torch.tensor([[0.9, 0.1]]), quarter), PoseTarget(labels, true), torch.zeros(1, 1, 2, 2)
        )
        metrics, _ = found.metrics()
        assert metrics["rotation_error"] == pytest.approx(90)
        assert metrics["symmetric_error"] == pytest.approx(0, abs=0.1)

    def test_an_answer_gives_euler_angles(self):
        info = dataset_info("synthetic_poses")
        outputs = {
            "activations": torch.tensor([[0.1, 0.9]]),
            "rotations": torch.tensor([[[1.0, 0, 0, 0], [0.5**0.5, 0, 0, 0.5**0.5]]]),
        }
        answer = task_named("pose").answer(outputs, info, Image.new("RGB", (4, 4)))
        assert answer.row["euler"] == pytest.approx([0, 0, 90], abs=0.01)

    @pytest.mark.parametrize(
        "augment",
        [
            *({name: 0.1} for name in ("rotation", "shear", "scale", "translation", "squish")),
            {"crop": 20},
            {"flip": True},
            {"shift": 1},
            {"margin_shift": True},
        ],
        ids=lambda augment: next(iter(augment)),
    )
    def test_an_augmentation_that_moves_pixels_is_refused(self, augment):
        data = {**self.recipe["data"], "augment": augment}
        with pytest.raises(UserError, match="rotations of a pose task do not move"):
            build({**self.recipe, "data": data})


class TestRetrieval(TaskContract):
    recipe = {
        "model": {"name": "descriptor_tiny_test"},
        "data": {"name": "synthetic_places", "validation": 0.25, "images_per_place": 4},
        "batch_size": 16,
        "epochs": 2,
    }

    def test_metrics_by_hand(self):
        places = torch.tensor([0, 0, 1, 1])
        found = meter("retrieval", PlacedImages(blank(4), places, ("x", "y")), "triplet")
        angles = torch.tensor([0.0, 0.1, 0.15, 3.0])  # the second image of place 1 is alone
        descriptors = torch.stack([angles.cos(), angles.sin()], dim=1)
        found.add(DescriptorOutput(descriptors), places, torch.zeros(4, 1, 2, 2))
        assert found.metrics()[0] == {"recall_at_1": 0.5}  # the outer two find theirs

    def test_recall_does_not_depend_on_how_many_are_compared_at_once(self, monkeypatch):
        monkeypatch.setattr("torchcaps.train.tasks.retrieval._ROWS", 2)
        self.test_metrics_by_hand()

    def test_the_loss_is_that_of_groups_of_whole_places(self, monkeypatch):
        """Neither the order of the images nor the batches they came in decide who is compared with whom."""
        monkeypatch.setattr("torchcaps.train.tasks.retrieval._GROUP", 4)
        places = torch.arange(3).repeat_interleave(2)
        descriptors = torch.nn.functional.normalize(torch.randn(6, 3, generator=seeded()), dim=1)
        orders = (torch.arange(6), torch.randperm(6, generator=seeded()))
        losses = []
        for order in orders:
            found = meter("retrieval", PlacedImages(blank(6), places[order], tuple("xyz")), "triplet")
            for part in order.split(3):
                found.add(DescriptorOutput(descriptors[part]), places[part], torch.zeros(3, 1, 2, 2))
            losses.append(found.loss())
        groups = (slice(0, 4), slice(4, 6))
        each = [
            float(LOSSES["triplet"]()(DescriptorOutput(descriptors[group]), places[group]))
            for group in groups
        ]
        assert each[0] > 0
        assert losses == pytest.approx([(4 * each[0] + 2 * each[1]) / 6] * 2)

    def test_a_batch_has_the_places_and_images_it_should(self):
        task = task_named("retrieval")
        places = torch.arange(12).repeat_interleave(6)
        examples = PlacedImages(blank(72), places, tuple(map(str, range(12))))
        batches = task.batches(examples, 20, 5, torch.Generator().manual_seed(0))
        assert len(batches) == 3
        for batch in batches:
            numbers, counts = places[batch].unique(return_counts=True)
            assert len(numbers) == 4
            assert counts.tolist() == [5, 5, 5, 5]
            assert len(batch.unique()) == 20

    def test_a_place_with_just_enough_images_is_shown_and_one_with_fewer_is_not(self):
        places = torch.cat([torch.arange(3).repeat_interleave(5), torch.full((4,), 3)])
        examples = PlacedImages(blank(19), places, tuple("abcd"))
        (batch,) = task_named("retrieval").batches(examples, 15, 5, torch.Generator().manual_seed(0))
        assert places[batch].unique().tolist() == [0, 1, 2]

    def test_whole_places_validate(self):
        places = torch.arange(10).repeat_interleave(3)
        examples = PlacedImages(blank(30), places, tuple(map(str, range(10))))
        train, validation = task_named("retrieval").split(examples, 0.3, 0)
        assert not set(train.places.tolist()) & set(validation.places.tolist())
        assert len(validation) == 9

    def test_the_batch_that_an_error_names_can_be_made(self):
        task, random = task_named("retrieval"), torch.Generator()
        examples = PlacedImages(blank(24), torch.arange(4).repeat_interleave(6), tuple("abcd"))
        with pytest.raises(UserError, match="only 4 places train with 5 images or more") as refused:
            task.batches(examples, 100, 5, random)
        batch_size = int(str(refused.value).partition("--set batch_size=")[2])
        assert {len(batch) for batch in task.batches(examples, batch_size, 5, random)} == {20}

    def test_too_few_images_of_all_places_are_no_fault_of_the_batch(self):
        examples = PlacedImages(blank(24), torch.arange(4).repeat_interleave(6), tuple("abcd"))
        with pytest.raises(UserError, match=r"two places or more with 7 images each.* has 0; add") as refused:
            task_named("retrieval").batches(examples, 14, 7, torch.Generator())
        assert "batch_size" not in str(refused.value)

    @pytest.mark.parametrize(("batch_size", "per_place"), [(21, 5), (5, 5), (100, 5), (20, 9)])
    def test_batches_that_cannot_be_made_are_refused(self, batch_size, per_place):
        examples = PlacedImages(blank(24), torch.arange(4).repeat_interleave(6), tuple("abcd"))
        with pytest.raises(UserError, match="places"):
            task_named("retrieval").batches(examples, batch_size, per_place, torch.Generator())


def test_every_task_has_a_contract():
    kinds = [kind for kind in TaskContract.__subclasses__() if kind.__module__ == __name__]
    assert {build({**kind.recipe}).task.name for kind in kinds} == set(TASKS.names())
    assert len({kind.recipe["model"]["name"] for kind in kinds}) == len(TASKS.names())


def test_a_loss_of_another_task_is_refused():
    with pytest.raises(UserError, match=r"margin is a loss of classification.*losses are dice_cross"):
        build({**TestSegmentation.recipe, "loss": {"name": "margin"}})


def test_a_dataset_of_another_task_is_refused(tmp_path):
    recipe = build({**TestSegmentation.recipe, "data": {"name": "synthetic_mnist"}})
    with pytest.raises(UserError, match="synthetic_mnist is for classification"):
        train(recipe, tmp_path / "run", Machine(device="cpu"))
    assert not (tmp_path / "run").exists()


def test_a_metric_of_another_task_is_refused():
    with pytest.raises(UserError, match="classification has no metric 'dice'"):
        build({**TestClassification.recipe, "select_by": "dice"})
