"""From a trained trunk to a pruned one and to capsules on it, at toy size."""

import json
import shutil
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from torchcaps.core import UserError
from torchcaps.layers.backbone import create_trunk
from torchcaps.models import create_model
from torchcaps.train import (
    Machine,
    StructuredPruning,
    evaluate_run,
    load_run,
    load_split,
    prune_run,
    train,
)
from torchcaps.train.import_weights import import_trunk_file
from torchcaps.train.machine import launch
from torchcaps.train.pruning.candidates import Candidates, plan_candidates
from torchcaps.train.pruning.search import _AT_ONCE
from torchcaps.train.recipe import build

from refusal import REFUSED
from small_runs import assert_same_weights

CPU = Machine(device="cpu")
DATA = {"name": "synthetic_mnist", "limit": 60, "validation": 0.4}
TRUNK = {
    "model": {
        "name": "trunk_classifier_tiny_test",
        "trunk": "resnet_tiny",
        "image_size": 28,
        "num_classes": 10,
    },
    "data": DATA,
    "loss": {"name": "cross_entropy"},
    "epochs": 1,
    "batch_size": 16,
}
CAPSULES = {
    **TRUNK,
    "model": {
        "name": "backbone_capsnet_tiny_test",
        "image_size": 28,
        "num_classes": 10,
        "decoder": "none",
    },
    "loss": {},
}
SEARCH = StructuredPruning(candidates=6, batches=2, batch_size=16)


@pytest.fixture(scope="module")
def trunk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trunk") / "run"
    train(build(TRUNK), folder, CPU)
    return folder


@pytest.fixture(scope="module")
def pruned(trunk):
    folder = trunk.with_name("pruned")
    prune_run(trunk, folder, SEARCH, CPU)
    return folder


def scores(folder):
    return [json.loads(line)["accuracy"] for line in (folder / "candidates.jsonl").read_text().splitlines()]


def test_the_best_candidate_is_kept_and_meets_the_target(trunk, pruned):
    result = json.loads((pruned / "result.json").read_text())
    assert result["macs"]["after"] / result["macs"]["before"] == pytest.approx(0.5, abs=0.005)
    assert result["search"]["scores"] == scores(pruned)
    assert result["metrics"]["val_accuracy"] == max(scores(pruned))
    run = load_run(pruned)
    assert list(run.model.trunk.widths) == result["search"]["widths"]
    assert result["parameters"] < sum(p.numel() for p in load_run(trunk).model.parameters())
    assert int(run.model.trunk.bn1.num_batches_tracked) == SEARCH.batches


def test_a_candidate_adapts_to_training_images_and_is_scored_on_images_held_out(trunk, pruned):
    run = load_run(pruned)  # the best candidate, its statistics adapted
    found = evaluate_run(run, "validation")
    assert found["accuracy"] == pytest.approx(max(scores(pruned)))
    assert found["images"] == 24
    held_out = load_split(run, "validation")[0].images
    candidates = Candidates(launch(CPU), load_run(trunk), SEARCH)
    assert torch.equal(candidates.splits.validation.images, held_out)
    adapted = list(candidates._batches())
    assert [len(batch) for batch in adapted] == [16, 16]
    shown = candidates.pipeline.for_evaluation(candidates.splits.train.images)[1].flatten(1).tolist()
    assert all(image in shown for batch in adapted for image in batch.flatten(1).tolist())
    assert StructuredPruning() == StructuredPruning(batches=100, batch_size=128)


def test_a_search_that_was_killed_ends_as_if_it_had_not_been(trunk, pruned, tmp_path):
    def kill(done, planned, best):
        assert (done, planned) == (_AT_ONCE, SEARCH.candidates)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prune_run(trunk, tmp_path / "again", SEARCH, CPU, on_candidate=kill)
    assert not (tmp_path / "again" / "result.json").exists()
    told = []
    prune_run(trunk, tmp_path / "again", SEARCH, CPU, on_candidate=lambda *facts: told.append(facts[0]))
    assert told == [SEARCH.candidates]  # the first four were not scored again
    assert scores(tmp_path / "again") == scores(pruned)
    assert_same_weights(tmp_path / "again", pruned)


def test_a_finished_search_is_read_back_and_more_candidates_continue_it(trunk, pruned, tmp_path):
    few = replace(SEARCH, candidates=2)
    first = prune_run(trunk, tmp_path, few, CPU)
    assert prune_run(trunk, tmp_path, few, CPU, on_candidate=pytest.fail) == first
    prune_run(trunk, tmp_path, SEARCH, CPU)
    assert scores(tmp_path) == scores(pruned)


@pytest.mark.parametrize("method", ["l1", "random"])
def test_baselines_have_one_candidate_of_even_widths(trunk, method, tmp_path):
    result = prune_run(trunk, tmp_path, replace(SEARCH, method=method), CPU)
    assert len(result["search"]["scores"]) == 1
    widths, full = result["search"]["widths"], create_trunk("resnet_tiny").widths
    assert result["macs"]["after"] / result["macs"]["before"] == pytest.approx(0.5, abs=0.05)
    removed = [1 - width / whole for width, whole in zip(widths, full, strict=True)]
    assert max(removed) - min(removed) < 0.3  # one channel of four


@pytest.mark.parametrize("method", ["eagleeye", "l1", "random"])
def test_filters_stay_by_their_norms_or_blindly(trunk, method):
    run = load_run(trunk)
    whole = run.model.trunk.conv1.weight.detach()
    strongest = sorted(range(8), key=lambda channel: -float(whole[channel].abs().sum()))[:3]
    kept = []
    for seed in range(4):
        settings = replace(SEARCH, method=method, seed=seed, batches=1)
        (model,) = Candidates(launch(CPU), run, settings).adapted([(3, *run.model.trunk.widths[1:])])
        filters = model.trunk.conv1.weight.detach()
        kept.append([channel for channel in range(8) if any(torch.equal(whole[channel], f) for f in filters)])
        assert torch.equal(filters, whole[kept[-1]])
    assert all(channels == sorted(strongest) for channels in kept) == (method != "random")
    assert (len({tuple(channels) for channels in kept}) > 1) == (method == "random")


@pytest.mark.parametrize("method", ["eagleeye", "l1"])
def test_widths_leave_the_head_what_it_needs_and_are_the_multiples_asked_for(method):
    model = create_model("backbone_capsnet_tiny_test", trunk="resnet_small", image_size=32, primary_pose=256)
    settings = StructuredPruning(method=method, flops=0.3, candidates=20, multiple=4)
    _, drawn = plan_candidates(model, settings)
    assert len(drawn.widths) == (20 if method == "eagleeye" else 1)
    assert all(widths[-1] >= 256 for widths in drawn.widths)  # of 512
    assert all(width % 4 == 0 for widths in drawn.widths for width in widths)


def test_a_shorter_search_keeps_the_best_of_its_own_candidates(trunk, pruned, tmp_path):
    """The other candidates were scored before, and may be better."""
    folder = shutil.copytree(pruned, tmp_path / "again")
    rows = [json.loads(line) for line in (folder / "candidates.jsonl").read_text().splitlines()]
    rows[4]["accuracy"] = 2.0
    (folder / "candidates.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = prune_run(trunk, folder, replace(SEARCH, candidates=2), CPU)
    assert result["search"]["scores"] == scores(pruned)[:2]
    assert result["metrics"]["val_accuracy"] == max(scores(pruned)[:2])


@pytest.mark.slow
def test_a_pruned_trunk_is_tuned_and_carries_frozen_or_learning_capsules(pruned, tmp_path):
    run = load_run(pruned)
    tuned = train(run.recipe, tmp_path / "tuned", CPU)
    assert tuned["metrics"]["epochs"] == 1
    for freeze in (True, False):
        recipe = build(
            {
                **CAPSULES,
                "model": CAPSULES["model"] | {"freeze_trunk": freeze},
                "start_from": str(tmp_path / "tuned"),
            },
        )
        folder = tmp_path / f"capsules-{freeze}"
        train(recipe, folder, CPU)
        assert load_run(folder).recipe.model["trunk_widths"] == list(run.model.trunk.widths)
        before, after = (
            load_file(tmp_path / "tuned" / "weights.safetensors"),
            load_file(folder / "weights.safetensors"),
        )
        shared = [name for name in after if name.startswith("trunk.")]
        assert len(shared) > 20
        assert all(torch.equal(before[name], after[name]) for name in shared) == freeze


def test_a_capsule_network_is_pruned_with_its_head(tmp_path):
    train(build(CAPSULES), tmp_path / "run", CPU)
    result = prune_run(tmp_path / "run", tmp_path / "pruned", replace(SEARCH, candidates=2), CPU)
    model = load_run(tmp_path / "pruned").model
    assert model.classes.in_caps == result["search"]["widths"][-1] // 4
    train(load_run(tmp_path / "pruned").recipe, tmp_path / "tuned", CPU)


def test_what_is_told_of_the_test_images_is_measured_on_them(pruned):
    told, found = json.loads((pruned / "result.json").read_text())["metrics"], evaluate_run(load_run(pruned))
    assert found["images"] == 128  # of the validation split there are 24
    assert told["test_accuracy"] == pytest.approx(found["accuracy"])
    assert told["test_loss"] == pytest.approx(found["loss"], rel=1e-5)


def test_a_capsule_network_routes_as_often_as_its_annealing_found(tmp_path):
    still = {"learning_rate": 1e-30}  # more iterations change the loss, learning does not
    annealing = {"r0": 2, "r_max": 2, "patience": 1}
    train(build({**CAPSULES, "optim": still, "annealing": annealing}), tmp_path / "run", CPU)
    prune_run(tmp_path / "run", tmp_path / "pruned", replace(SEARCH, candidates=1), CPU)
    assert load_run(tmp_path / "pruned").model.classes.routing.iterations == 2


def test_impossible_targets_end_before_any_data_is_read(trunk, tmp_path, monkeypatch):
    monkeypatch.setattr("torchcaps.train.Source.splits", lambda *_: pytest.fail("data was read"))
    with pytest.raises(UserError, match="cannot be reached"):
        prune_run(trunk, tmp_path / "a", replace(SEARCH, flops=0.01), CPU)
    with pytest.raises(UserError, match="must lie above 0 and be at most 1"):
        prune_run(trunk, tmp_path / "a", replace(SEARCH, flops=2.0), CPU)
    assert not (tmp_path / "a").exists()
    for wrong in ({"method": "best"}, {"candidates": 0}, {"batches": 0}):
        with pytest.raises(REFUSED, match="|".join(wrong)):
            replace(SEARCH, **wrong)


def test_folders_are_not_mixed_up(trunk, pruned, tmp_path):
    with pytest.raises(UserError, match="already holds a run"):
        prune_run(trunk, trunk, SEARCH, CPU)
    with pytest.raises(UserError, match=r"holds another search \(changed: flops, seed\)"):
        prune_run(trunk, pruned, replace(SEARCH, flops=0.7, seed=1), CPU)
    with pytest.raises(UserError, match="holds no trained run"):
        prune_run(tmp_path, tmp_path / "b", SEARCH, CPU)


def test_starting_from_other_weights_is_explained(pruned, tmp_path):
    model = TRUNK["model"] | {"trunk_widths": list(create_trunk("resnet_tiny").widths)}
    wide = build({**TRUNK, "model": model, "start_from": str(pruned)})
    with pytest.raises(UserError, match=r"classifier\.weight is 10x\d+ in .* and 10x32 .* same widths"):
        train(wide, tmp_path / "a", CPU)
    with pytest.raises(UserError, match="no weights at"):
        train(replace(wide, start_from=str(tmp_path / "none")), tmp_path / "b", CPU)
    save_file({"other": torch.zeros(1)}, tmp_path / "other.safetensors")
    with pytest.raises(UserError, match="no layer in common"):
        train(replace(wide, start_from=str(tmp_path / "other.safetensors")), tmp_path / "c", CPU)


def test_a_run_goes_on_when_the_one_that_it_started_from_is_gone(pruned, tmp_path):
    source = shutil.copytree(pruned, tmp_path / "source")
    longer = build({**TRUNK, "start_from": str(source), "epochs": 2})
    train(longer, tmp_path / "whole", CPU)
    train(replace(longer, epochs=1), tmp_path / "run", CPU)
    shutil.rmtree(source)
    train(longer, tmp_path / "run", CPU, resume=True)
    assert_same_weights(tmp_path / "whole", tmp_path / "run")


def test_imported_trunk_weights_start_a_capsule_network(tmp_path):
    given = create_trunk("resnet_tiny")
    save_file({**given.state_dict(), "fc.weight": torch.zeros(5, 32)}, tmp_path / "vision.safetensors")
    import_trunk_file(tmp_path / "vision.safetensors", tmp_path / "trunk.safetensors", "resnet_tiny")
    model = CAPSULES["model"] | {"freeze_trunk": True, "in_channels": 3, "image_size": 32}
    recipe = build(
        {
            **CAPSULES,
            "model": model,
            "data": DATA | {"name": "synthetic_cifar10"},
            "start_from": str(tmp_path / "trunk.safetensors"),
        },
    )
    train(recipe, tmp_path / "run", CPU)
    after = load_file(tmp_path / "run" / "weights.safetensors")
    assert all(torch.equal(after[f"trunk.{name}"], values) for name, values in given.state_dict().items())


@pytest.mark.gpu
def test_a_frozen_trunk_stays_as_it_is_in_a_captured_step(trunk, tmp_path):
    model = CAPSULES["model"] | {"freeze_trunk": True}
    recipe = build({**CAPSULES, "model": model, "epochs": 3, "start_from": str(trunk)})
    train(recipe, tmp_path, Machine(device="cuda", precision="bf16"))
    before, after = load_file(trunk / "weights.safetensors"), load_file(tmp_path / "weights.safetensors")
    assert all(torch.equal(before[name], after[name]) for name in after if name.startswith("trunk."))


@pytest.mark.gpu
def test_candidates_score_alike_on_side_streams(trunk, tmp_path):
    alone = [
        prune_run(trunk, tmp_path / str(n), replace(SEARCH, candidates=n), Machine(device="cuda"))
        for n in (1, 4)
    ]
    assert alone[1]["search"]["scores"][0] == pytest.approx(alone[0]["search"]["scores"][0], abs=0.03)


@pytest.mark.parametrize("content", ["{", "3", '{"widths": []}', '{"accuracy": "x"}'])
def test_damaged_candidates_are_named(trunk, pruned, tmp_path, content):
    folder = shutil.copytree(pruned, tmp_path / "pruned")
    (folder / "result.json").unlink()
    (folder / "candidates.jsonl").write_text(content)
    with pytest.raises(UserError, match=r"candidates\.jsonl is damaged .*delete it"):
        prune_run(trunk, folder, SEARCH, CPU)


@pytest.mark.parametrize("name", ["pruning.json", "result.json"])
@pytest.mark.parametrize("content", ["null", "[]"])
def test_a_damaged_search_is_named(trunk, pruned, tmp_path, name, content):
    folder = shutil.copytree(pruned, tmp_path / "pruned")
    (folder / name).write_text(content)
    with pytest.raises(UserError, match=rf"{name} is damaged .*delete it"):
        prune_run(trunk, folder, SEARCH, CPU)
