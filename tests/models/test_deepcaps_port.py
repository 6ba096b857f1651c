"""The thesis's port of DeepCaps, against a transcription of it in plain functions."""

import torch
from torch.nn import functional as F
from torch.testing import assert_close

from torchcaps.models import create_model

SIZES = {"image_size": 20, "num_classes": 4, "stem_channels": 4, "types": 2, "poses": (2, 4, 4, 4)}
TYPES = SIZES["types"]


def shortened(poses, dim):
    squared = (poses**2).sum(dim, keepdim=True)
    return poses * squared / (1 + squared) / torch.sqrt(squared + 1e-8)


def capsule_convolution(layer, channels, stride=1):
    """Padding 1 on every side whatever the stride; the squash runs over the pose of each type."""
    convolved = F.conv2d(channels, layer.conv.weight, layer.conv.bias, stride, padding=1)
    return shortened(convolved.unflatten(1, (TYPES, -1)), dim=2).flatten(1, 2)


def routed_skip(skip, channels):
    """Components 0 to 2 of each type vote; couplings are shared out over maps and types; there is no bias."""
    votes = F.conv3d(
        channels.unsqueeze(1), skip.conv.weight, skip.conv.bias, stride=(4, 1, 1), padding=(0, 1, 1)
    )
    votes = votes.unflatten(1, (TYPES, 4)).permute(0, 3, 4, 5, 1, 2)  # batch, child, h, w, parent, pose
    logits = torch.zeros(votes.shape[:-1], dtype=votes.dtype)
    for step in range(3):
        shares = torch.softmax(logits.flatten(2), -1).view(logits.shape)
        parents = shortened((shares.unsqueeze(-1) * votes).sum(1), dim=-1)
        if step < 2:
            logits = logits + (votes * parents.unsqueeze(1)).sum(-1)
    return parents.permute(0, 3, 4, 1, 2).flatten(1, 2)


def class_capsules(layer, children):
    """The bias joins in the last round alone."""
    votes = torch.einsum("bip,ipod->biod", children, layer.weight)
    logits = torch.zeros(votes.shape[:-1], dtype=votes.dtype)
    for step in range(3):
        pooled = (torch.softmax(logits, 2).unsqueeze(-1) * votes).sum(1)
        if step == 2:
            return shortened(pooled + layer.routing.bias, dim=-1)
        logits = logits + (votes * shortened(pooled, dim=-1).unsqueeze(1)).sum(-1)


def as_children(channels):
    return channels.unflatten(1, (TYPES, -1)).permute(0, 3, 4, 1, 2).flatten(1, 3)


def transcribed(model, images):
    channels = F.conv2d(images, model.stem.weight, model.stem.bias, padding=1)
    norm = model.norm
    channels = F.batch_norm(
        channels, norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps
    )
    channels = shortened(channels.unsqueeze(2), dim=2).squeeze(2)  # capsules of one dimension
    grids = []
    for cell in model.cells:
        start = capsule_convolution(cell.halve, channels, stride=2)
        main = capsule_convolution(cell.main[1], capsule_convolution(cell.main[0], start))
        last = len(grids) == 3
        channels = main + (routed_skip(cell.skip, start) if last else capsule_convolution(cell.skip, start))
        grids.append(channels)
    return class_capsules(model.classes, torch.cat([as_children(grid) for grid in grids[-2:]], 1))


def test_the_port_is_its_transcription():
    torch.manual_seed(0)
    model = create_model("deepcaps_28_thesis", **SIZES).double().eval()
    model.norm.running_mean.uniform_(-0.2, 0.2)
    model.norm.running_var.uniform_(0.5, 1.5)
    images = torch.rand(2, 1, 20, 20, dtype=torch.float64)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.05 * torch.randn_like(parameter)
        assert_close(model(images).poses, transcribed(model, images), rtol=1e-12, atol=1e-14)


def test_the_authors_network_is_another_one():
    torch.manual_seed(0)
    model = create_model("deepcaps_28", **SIZES, depth_kernel=3, conv_bias=True).double().eval()
    images = torch.rand(2, 1, 20, 20, dtype=torch.float64)
    with torch.no_grad():
        difference = (model(images).poses - transcribed(model, images)).abs().max()
    assert difference > 1e-3
