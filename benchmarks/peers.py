"""Public code of others beside ours: `python benchmarks/peers.py CLONES FILE [--device cuda] [--batch 128]`.

CLONES holds clones by owner and name, such as CLONES/gram-ai/capsule-networks, at the commits of `COMMITS`;
what is not there is skipped, and a row says so where the files have no Git beside them. One pass is timed:
images to lengths of class capsules, margin loss, and the gradients of all weights, without decoder and
optimizer, in float32. Ours has the sizes of the others. The networks of a contest are timed by turns, so that
what slows the machine for a while meets all of them.

Their networks run as they were published: a step at a time, and on a GPU also captured as a CUDA graph, which
their code does not do. Most of them know CUDA alone; on a CPU their calls of `cuda` are made to do nothing.
All use freed memory again, as `torchcaps train` makes its process do.
"""

import argparse
import importlib
import subprocess
import sys
import warnings
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import torch
from torch import nn
from torch.nn import functional as F

from torchcaps import create_model
from torchcaps.bench import Effort, PeakMemory, as_graph, release_memory, render_bench, time_by_turns
from torchcaps.core import Capsules
from torchcaps.layers import FcCaps
from torchcaps.losses import margin_loss
from torchcaps.storage import write_json
from torchcaps.train import provenance
from torchcaps.train.loop import use_channels_last
from torchcaps.train.machine import keep_freed_memory
from torchcaps.train.run import device_name

OURS = "torchcaps"
TURNS = 15  # at least; the times of single passes scatter on a CPU
FORMS = {"cpu": ("",), "cuda": ("", "+graph")}
CLASSES, POSES = (32 * 6 * 6, 10), (8, 16)  # capsules and pose dimensions below and above the last layer


class Lengths(nn.Module):
    """A network of others, as a function of images that gives the lengths of its class capsules."""

    def __init__(self, parts, lengths):
        super().__init__()
        self.parts, self.lengths = nn.ModuleList(parts), lengths

    def forward(self, images):
        return self.lengths(images)


def gram_ai(clone):
    net = load(clone, "capsule_network").CapsuleNet()
    parts = net.conv1, net.primary_capsules, net.digit_capsules

    def lengths(images):
        poses = net.digit_capsules(net.primary_capsules(F.relu(net.conv1(images), inplace=True)))
        return poses.squeeze().transpose(0, 1).norm(dim=-1)

    return Lengths(parts, lengths)


def xifeng_guo(clone):
    stem, primary = (
        nn.Conv2d(1, 256, 9),
        load(clone, "capsulelayers").PrimaryCapsule(256, 256, 8, 9, stride=2),
    )
    classes = xifeng_guo_layer(clone)
    return Lengths([stem, primary, classes], lambda images: classes(primary(stem(images).relu())))


def adam_bielski(clone):
    net = load(clone, "net").CapsNet(routing_iterations=2)  # after a first one, which it does not count
    return Lengths([net], lambda images: net(images)[1])


def gram_ai_layer(clone):
    layer = load(clone, "capsule_network").CapsuleLayer(*CLASSES[::-1], *POSES)
    return Lengths([layer], lambda poses: layer(poses).squeeze().transpose(0, 1).norm(dim=-1))


def xifeng_guo_layer(clone):
    layer = load(clone, "capsulelayers").DenseCapsule(CLASSES[0], POSES[0], CLASSES[1], POSES[1], routings=3)
    return Lengths([layer], lambda poses: layer(poses).norm(dim=-1))


def adam_bielski_layer(clone):
    module = load(clone, "net")
    routing = module.AgreementRouting(*CLASSES, 2)
    layer = module.CapsLayer(CLASSES[0], POSES[0], CLASSES[1], POSES[1], routing)
    return Lengths([layer], lambda poses: layer(poses).norm(dim=-1))


def our_layer(gradient):
    layer = FcCaps(*CLASSES, *POSES, routing={"name": "dynamic", "gradient": gradient})

    def lengths(poses):
        return layer(Capsules(poses, poses.norm(dim=-1)), return_coupling=False).activations

    return Lengths([layer], lengths)


def akhdanfadh(clone):
    net = load(clone, "model.model").EfficientCapsNet()
    return Lengths([net], lambda images: net(images)[1])


def yl_1993(clone):
    net = load(clone, "model.capsules").CapsNet(A=64, B=8, C=16, D=16, E=10)
    return Lengths([net], net)


def our_network(**ours):
    """As `torchcaps train` lays it out."""
    network = create_model(**ours)
    use_channels_last(network)
    return network


class Contest(NamedTuple):
    case: str
    shape: tuple[int, ...]  # of what our network gets
    ours: object
    peers: dict[str, object]
    theirs: tuple[int, ...] = ()  # where theirs get another shape


COMMITS = {
    "gram-ai/capsule-networks": "0aae01117626ea534c394ef2e1e2187874310ca3",
    "adambielski/CapsNet-pytorch": "130770c1569a15a98513d10513ecb9ef924999dc",
    "XifengGuo/CapsNet-Pytorch": "ce41f3afcb1fec448706dac34f377f0ca0cedd44",
    "akhdanfadh/efficient-capsnet-pytorch": "7f365b5e9b9294c2470c68710d943a6e6b322508",
    "yl-1993/Matrix-Capsules-EM-PyTorch": "94afce13efa5fed8b76ba6481ae0dff6bfee4d86",
}
GRAM_AI, ADAM_BIELSKI, XIFENG_GUO, AKHDANFADH, YL_1993 = COMMITS
DIGIT = (1, 28, 28)
CONTESTS = (
    Contest(
        "layer of 1152x8 to 10x16",
        (CLASSES[0], POSES[0]),
        partial(our_layer, "full"),
        {GRAM_AI: gram_ai_layer, ADAM_BIELSKI: adam_bielski_layer},
    ),
    Contest(
        "layer of 1152x8 to 10x16, gradient of the last round",
        (CLASSES[0], POSES[0]),
        partial(our_layer, "last"),
        {XIFENG_GUO: xifeng_guo_layer},
    ),
    Contest(
        "DR-CapsNet",
        DIGIT,
        partial(our_network, name="dr_capsnet_mnist"),
        {GRAM_AI: gram_ai, ADAM_BIELSKI: adam_bielski},
    ),
    Contest(
        "DR-CapsNet, gradient of the last round",
        DIGIT,
        partial(our_network, name="dr_capsnet_mnist", routing={"name": "dynamic", "gradient": "last"}),
        {XIFENG_GUO: xifeng_guo},
    ),
    Contest(
        "Efficient-CapsNet",
        DIGIT,
        partial(our_network, name="efficient_capsnet_mnist"),
        {AKHDANFADH: akhdanfadh},
    ),
    Contest(
        "EM-CapsNet, 64/8/16/16",
        (1, 32, 32),  # it has no padding: the maps are those of 28 px with it
        partial(our_network, name="em_capsnet_small", in_channels=1, num_classes=10),
        {YL_1993: yl_1993},
        theirs=DIGIT,
    ),
)


def load(clone, module):
    """A module of a clone, under a name that the next clone can use again."""
    sys.path.insert(0, str(clone))
    try:
        return importlib.import_module(module)
    finally:
        sys.path.remove(str(clone))
        for name in [name for name in sys.modules if name.partition(".")[0] == module.partition(".")[0]]:
            del sys.modules[name]


@contextmanager
def without_cuda():
    """Tensors that are sent to a GPU stay where they are."""
    stay = patch.object(torch.Tensor, "cuda", lambda tensor, *_: tensor)
    with stay, patch.object(torch.cuda, "FloatTensor", torch.FloatTensor):
        yield


def pass_of(build, inputs, labels):
    """One training pass of a network."""
    at_home = without_cuda if inputs.device.type == "cpu" else nullcontext
    with at_home():
        network = build().to(inputs.device)
    wanted = [*network.parameters(), *([inputs] if inputs.requires_grad else [])]

    def work():
        with at_home():
            output = network(inputs)
        return torch.autograd.grad(margin_loss(getattr(output, "activations", output), labels), wanted)

    return work


def compare(contest, clones, facts, device, batch):
    """A row for each network and form of a contest; all of them are timed by turns, one pass of each."""
    labels = torch.arange(batch, device=device) % 10
    rows, works = [], []
    for name, build in {OURS: contest.ours, **contest.peers}.items():
        shape = contest.shape if name == OURS else contest.theirs or contest.shape
        inputs = torch.rand(batch, *shape, device=device, requires_grad=len(shape) == 2)
        made = build if name == OURS else partial(build, clones / name)
        version, obstacle = (OURS, None) if name == OURS else version_of(clones / name, name)
        for form in FORMS[device.type]:
            row = {
                "suite": "peers",
                "case": f"{contest.case}, forward+backward",
                "backend": name + form,
                "batch": batch,
                "model": version,
                "precision": "32",
                **dict.fromkeys(("ms", "spread", "img_s", "peak_mb")),
                **facts,
            }
            rows.append(row)
            if obstacle is not None:
                row["skipped"] = obstacle
                continue
            try:
                work = pass_of(made, inputs, labels)
                work()
                peak = PeakMemory(device)
                work = as_graph(work) if "graph" in form else work
                work()
                row["peak_mb"] = peak.mebibytes()
                works.append((row, work))
            except Exception as error:  # what does not run today is a result
                row["error"] = f"{type(error).__name__}: {error}".partition("\n")[0]
    effort = replace(Effort.usual(device), least=TURNS)
    timings = time_by_turns([work for _, work in works], device, effort)
    for (row, _), timing in zip(works, timings, strict=True):
        row |= {"ms": round(timing.ms, 3), "spread": round(timing.spread, 4), "repeats": timing.repeats}
        row["img_s"] = round(1000 * batch / timing.ms, 1)
    return rows


def version_of(clone, name):
    """Which files are measured, and why they are not."""
    if not clone.is_dir():
        return name, "no clone is there"
    if not (clone / ".git").exists():
        return f"{name}, files without Git", None
    command = ["git", "-C", str(clone), "rev-parse", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    obstacle = None if found == COMMITS[name] else f"check out {COMMITS[name][:12]}"
    return f"{name}@{found[:12]}", obstacle


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("clones", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--device", type=torch.device, default=torch.device("cpu"))
    parser.add_argument("--batch", type=int, default=128)
    chosen = parser.parse_args()
    if not chosen.clones.is_dir():
        parser.error(f"{chosen.clones} is no folder")
    keep_freed_memory()
    warnings.filterwarnings("ignore", message="Implicit dimension choice for softmax")
    made_by, rows = provenance(chosen.device), []
    facts = {"device": device_name(chosen.device), "torch": torch.__version__, "commit": made_by["commit"]}
    for contest in CONTESTS:
        rows += compare(contest, chosen.clones, facts, chosen.device, chosen.batch)
        write_json(chosen.file, {"provenance": made_by, "rows": rows})
        release_memory(chosen.device)
    print(render_bench(rows))


if __name__ == "__main__":
    main()
