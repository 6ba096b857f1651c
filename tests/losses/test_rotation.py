"""Losses of rotations by hand, and what they forgive."""

import pytest
import torch

from torchcaps.core import PoseOutput, PoseTarget, UserError
from torchcaps.core.rotation import hamilton
from torchcaps.core.symmetry import symmetry_group
from torchcaps.losses import SpreadRotationLoss, nearest_symmetric, render_loss, rotation_loss


class TestRotationLosses:
    half = 0.5**0.5
    still = torch.tensor([[1.0, 0, 0, 0]])
    quarter = torch.tensor([[half, half, 0, 0]])  # about x

    def test_both_forms_by_hand(self):
        assert rotation_loss(self.still, self.quarter) == pytest.approx(0.5)
        assert render_loss(self.still, -self.quarter) == pytest.approx(1 - self.half)

    def test_losses_are_means_over_a_batch(self):
        batch = torch.cat([self.still, self.quarter, self.quarter, self.quarter])
        same = self.quarter.expand(4, 4)
        assert rotation_loss(batch, same) == pytest.approx(0.5 / 4)
        assert render_loss(batch, same) == pytest.approx((1 - self.half) / 4)

    def test_a_turn_that_looks_the_same_is_forgiven_when_asked(self):
        output = PoseOutput(torch.tensor([[1.0, 0.0]]), self.quarter[:, None].expand(1, 2, 4))
        targets = PoseTarget(torch.tensor([0]), self.still)
        knows = SpreadRotationLoss(symmetries=("cube", "none"))
        forgives = SpreadRotationLoss(symmetries=("cube", "none"), forgive=True)
        margin = torch.tensor(0.9)
        assert knows(output, targets, margin=margin) == pytest.approx(0.05)
        assert forgives(output, targets, margin=margin) == pytest.approx(0, abs=1e-6)
        other_class = PoseTarget(torch.tensor([1]), self.still)
        assert forgives(output, other_class, margin=margin) == pytest.approx(0.05 + 1.9**2)

    def test_the_sum_takes_the_form_and_the_margin_that_it_is_given(self):
        output = PoseOutput(torch.tensor([[0.6, 0.5]]), self.quarter[:, None].expand(1, 2, 4))
        targets, margin = PoseTarget(torch.tensor([0]), self.still), torch.tensor(0.2)
        spread = (0.2 - 0.1) ** 2
        for form, rotation in (("square", 0.5), ("render", 1 - self.half)):
            found = SpreadRotationLoss(form=form, rotation_weight=0.3)(output, targets, margin=margin)
            assert found == pytest.approx(spread + 0.3 * rotation)

    def test_the_symmetric_loss_is_the_least_over_the_group(self):
        own, true = (torch.nn.functional.normalize(torch.randn(20, 4), dim=1) for _ in range(2))
        group = symmetry_group("tetrahedron")
        found = 1 - (own * nearest_symmetric(own, true, group[None])).sum(1).square()
        each = torch.stack([1 - (own * hamilton(true, g)).sum(1).square() for g in group])
        torch.testing.assert_close(found, each.min(0).values)

    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ({"forgive": True}, "what should be forgiven"),
            ({"symmetries": ("sphere",)}, "symmetry 'sphere' is neither"),
            ({"rotation_weight": -1.0}, "must not be negative"),
        ],
    )
    def test_wrong_settings_are_refused(self, settings, words):
        with pytest.raises(UserError, match=words):
            SpreadRotationLoss(**settings)

    def test_symmetries_of_other_classes_are_refused(self):
        output = PoseOutput(torch.tensor([[1.0, 0.0]]), self.quarter[:, None].expand(1, 2, 4))
        loss = SpreadRotationLoss(symmetries=("cube",), forgive=True)
        with pytest.raises(UserError, match="names 1 classes, there are 2"):
            loss(output, PoseTarget(torch.tensor([0]), self.still), margin=torch.tensor(0.9))
