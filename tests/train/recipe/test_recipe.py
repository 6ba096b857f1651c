import math
from dataclasses import fields

import pytest

from torchcaps.core import UserError
from torchcaps.data import DATASETS
from torchcaps.models import MODELS
from torchcaps.train import Machine, load_recipe, packaged_recipes, train
from torchcaps.train.recipe import build, recipe_as_json
from torchcaps.train.recipe.values import apply_overrides, read_values

from sweep import first_of_each

SMALL = {"model": {"name": "dr_capsnet_tiny_test"}, "data": {"name": "synthetic_mnist"}, "epochs": 1}


def family_of(name):
    return MODELS[read_values(name)["model"]["name"]].family  # building all recipes takes seconds


@pytest.mark.parametrize("name", first_of_each(packaged_recipes(), family_of))
def test_every_shipped_recipe_trains_two_steps(name, tmp_path):
    recipe = load_recipe(name)
    variant, config = MODELS[recipe.model["name"]], recipe.sketch().config
    known = {field.name for field in fields(config)}
    data = recipe.data.name
    if "num_classes" in known:
        assert config.num_classes == DATASETS[data].num_classes
    kept = ("in_channels", "image_size", "num_classes", "decoder", "reconstruction")
    smaller = {"image_size": 32} if variant.task == "segmentation" else {}  # masks of any size are padded
    changes = {
        "model": {"name": f"{variant.family}_tiny_test"}
        | {key: getattr(config, key) for key in kept if key in known}
        | smaller,
        "data.name": data if data.startswith("synthetic_") else f"synthetic_{data}",
        "data.limit": 40 if variant.task == "retrieval" else 10,
        "data.validation": 0.2,
        "batch_size": 4,
        "epochs": 1,
        "data.images_per_place": 2,
    }
    result = train(load_recipe(name, changes=changes), tmp_path, Machine(device="cpu"))
    assert math.isfinite(result["metrics"][f"test_{recipe.task.leading_metric.name}"])


def test_a_recipe_round_trips():
    recipe = build(SMALL)
    assert build(recipe_as_json(recipe)) == recipe


def test_numbers_are_converted_to_their_type():
    recipe = build({**SMALL, "optim": {"learning_rate": "1e-3"}})
    assert recipe.optim.learning_rate == 1e-3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": "ten"}, "recipe.epochs: expected int, got 'ten'"),
        ({"epochs": 0}, "recipe.epochs must be at least 1"),
        ({"epochs": True}, "recipe.epochs: expected int, got True"),
        ({"optim": {"lr": 1}}, "key in recipe.optim: 'lr'"),
        ({"epoch": 3}, "did you mean epochs"),
        ({"optim": {"learning_rate": "fast"}}, "recipe.optim.learning_rate: expected float, got 'fast'"),
        ({"optim": {"learning_rate": -1}}, "must be positive"),
        ({"optim": 3}, "recipe.optim: expected a mapping of keys such as name"),
        ({"loss": {"name": "big"}}, "unknown loss 'big'; known: cross_entropy"),
        ({"loss": {"present": "far"}}, "recipe.loss.present: expected float, got 'far'"),
        ({"loss": {"name": "spread", "present": 0.9}}, "key in recipe.loss: 'present'"),
        ({"loss": {"name": "triplet"}}, "triplet is a loss of retrieval, .* for classification; its losses"),
        ({"loss": 3}, "recipe.loss: expected a mapping of keys such as name"),
        ({"loss": {"reconstruction": -1}}, "recipe.loss.reconstruction must not be negative"),
        ({"select_by": "dice"}, "classification has no metric 'dice'; known: loss, accuracy"),
        ({"data": {"name": "mnist", "fit": "squeeze"}}, "recipe.data.fit: expected one of"),
        ({"data": {"name": "mnist", "images_per_place": 1}}, "images_per_place must be at least 2"),
        ({"model": 3}, "needs a 'name'"),
        ({"data": {"name": "mnist", "validation": 1}}, "between 0 and 1"),
        ({"data": {"name": "mnist", "augment": {"contrast": [1]}}}, "contrast: expected 2 values, got 1"),
        ({"model": {}}, "needs a 'name'"),
        (
            {"data": {"name": "mnist", "preprocess": {"resize": 10**9}}},
            "preprocess.resize must lie between 0 and 10,000 pixels, got 1000000000",
        ),
        ({"data": {"name": "mnist", "limit": -5}}, "limit must not be negative, got -5; 0 means all"),
        ({"optim": {"learning_rate": float("nan")}}, "learning_rate: expected a finite number, got nan"),
        ({"optim": {"learning_rate": "inf"}}, "learning_rate: expected a finite number, got 'inf'"),
        ({"optim": {"decay": 0.0}}, "optim.decay must be positive, got 0.0"),
        ({"optim": {"weight_decay": -1}}, "optim.weight_decay must not be negative, got -1"),
        ({"patience": -1}, "patience must not be negative, got -1"),
        ({"keep_epochs": [0]}, "keep_epochs counts from 1"),
        ({"model": {"name": ["dr_capsnet_tiny_test"]}}, "needs a 'name', which is text"),
        (
            {"model": {"name": "dr_capsnet_tiny_test", 5: 3}},
            "recipe.model: keys must be text, got .'name', 5.",
        ),
        ({"loss": {"name": ["margin"]}}, "recipe.loss.name: expected str, got"),
        ({"loss": {"absent_weight": -1}}, "loss.absent_weight must not be negative, got -1"),
        (
            {"loss": {"name": "pair_margin", "absent_weight": -1}},
            "loss.absent_weight must not be negative, got -1",
        ),
        ({"loss": {"coupling_entropy": -1}}, "loss.coupling_entropy must not be negative, got -1"),
        ({"optim": {"decay": 1e300}}, "recipe.optim.decay multiplies the learning rate"),
        ({"seed": 2**63}, "recipe.seed: the number is too large"),
        ({"seed": 1 << 20_000}, "recipe.seed: the number is too large, got a very large int"),
        ({"optim": {"decay": 1 << 20_000}}, "recipe.optim.decay: expected float, got a very large int"),
    ],
)
def test_mistakes_name_their_place(change, message):
    with pytest.raises(UserError, match=message):
        build({**SMALL, **change})


def test_a_missing_key_is_named():
    with pytest.raises(UserError, match="recipe: the key 'epochs' is missing"):
        build({key: value for key, value in SMALL.items() if key != "epochs"})


def test_overrides_reach_nested_keys():
    values = apply_overrides({"a": {"b": 1}}, ["a.b=2", "c.d=[1, 2]"])
    assert values == {"a": {"b": 2}, "c": {"d": [1, 2]}}
    for wrong in ("novalue", "=3", "a.b.c=1"):
        with pytest.raises(UserError, match="--set"):
            apply_overrides({"a": {"b": 1}}, [wrong])


def test_unreadable_recipes_are_explained(tmp_path):
    with pytest.raises(UserError, match="no recipe at"):
        load_recipe(tmp_path / "none.yaml")
    (tmp_path / "bad.yaml").write_text("a: [1")
    with pytest.raises(UserError, match="not valid YAML"):
        load_recipe(tmp_path / "bad.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\x00\xff\xfe")
    with pytest.raises(UserError, match=r"binary.yaml is no text in UTF-8"):
        load_recipe(tmp_path / "binary.yaml")
    with pytest.raises(UserError, match="did you mean mnist/dr_capsnet"):
        load_recipe("mnist/dr_capsnett")
    with pytest.raises(UserError, match=r"recipe .runs/mine.; `torchcaps list recipes` .* in \.yaml$"):
        load_recipe("runs/mine")


ALIASES = "a0: &a0 [x, x]\n" + "".join(
    f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 9)}]\n" for number in range(1, 9)
)
MERGES = ALIASES.replace("[x, x]", "{x: 1}").replace("[", "{<<: [").replace("]", "]}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 2000, "not valid YAML"),
        ("seed: " + "1" * 5000, "not valid YAML: Exceeds the limit"),
        ("seed: 2023-13-45", "not valid YAML: month must be"),
        ("seed: !!int abc", "not valid YAML: invalid literal"),
        ("seed: !!timestamp abc", "not valid YAML"),
        ("seed: !!bool abc", "not valid YAML"),
        ("epochs: 1\nepochs: 2", "the key 'epochs' stands twice"),
        ("optim: {decay: 1, decay: 0.5}", "the key 'decay' stands twice"),
        (f"{ALIASES}epochs: *a8", "more than 10,000 values"),
        ("epochs: &a [*a]", "more than 10,000 values"),
        ("epochs: &a {b: *a}", "more than 10,000 values"),
        (f"{MERGES}epochs: 1", "more than 10,000 keys, with those that << repeats"),
        (f"epochs: {'x' * 100_000}", "the key 'epochs'|expected int"),
    ],
    ids=[
        "deep",
        "digits",
        "date",
        "tag",
        "no time",
        "no truth",
        "twice",
        "twice inside",
        "aliases",
        "itself",
        "cycle",
        "merges",
        "long",
    ],
)
def test_a_strange_file_is_one_short_line(text, message, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(f"model: {{name: dr_capsnet_tiny_test}}\ndata: {{name: mnist}}\n{text}\n")
    with pytest.raises(UserError, match=message) as caught:
        load_recipe(path)
    assert len(str(caught.value)) < 600
    assert "\n" not in str(caught.value)


def test_anchors_may_shorten_a_recipe(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "model: {name: dr_capsnet_tiny_test}\nepochs: 1\n"
        "data: {name: mnist, split_seed: &seed 3}\nseed: *seed\n"
    )
    assert load_recipe(path).seed == 3


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"stem_channels": 10**10}, "GiB for its weights alone"),
        ({"image_size": 10**7}, "GiB for its weights alone"),
        ({"class_pose": 4 * 10**18}, "too large for any machine"),
    ],
)
def test_a_model_larger_than_the_machine_is_refused_before_it_takes_memory(sizes, message, tmp_path):
    recipe = build({**SMALL, "model": {**SMALL["model"], **sizes}})
    with pytest.raises(UserError, match=message):
        train(recipe, tmp_path / "run", Machine(device="cpu"))
    assert not (tmp_path / "run").exists()


def test_a_rate_that_grows_beyond_all_numbers_is_an_error(tmp_path):
    changes = {"data": {"name": "synthetic_mnist", "limit": 20, "validation": 0.2}, "batch_size": 4}
    model = {**SMALL["model"], "image_size": 28, "num_classes": 10, "decoder": "none"}
    optim = {"decay": 1e6, "decay_steps": 1, "learning_rate": 1e-300}
    recipe = build({**SMALL, **changes, "model": model, "optim": optim, "epochs": 20})
    with pytest.raises(UserError, match=r"recipe\.optim\.decay 1e\+06 makes the rate infinite"):
        train(recipe, tmp_path / "run", Machine(device="cpu"))


@pytest.mark.parametrize("text", ["", "- 1"])
def test_a_file_without_keys_is_no_recipe(text, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match="should hold the keys of a recipe"):
        load_recipe(path, ["epochs=1"])


def test_a_folder_in_place_of_a_recipe_is_answered_with_the_command_for_it(tmp_path):
    (tmp_path / "my photos").mkdir()
    with pytest.raises(UserError, match=r"torchcaps train photos/efficient_capsnet --data '.*my photos'"):
        load_recipe(str(tmp_path / "my photos"))


def test_a_setting_of_a_routing_given_by_its_name_says_how_to_set_both():
    changes = {"model.routing": "em", "model.routing.iterations": 2}
    with pytest.raises(UserError, match=r"single value.*routing=\{name: em, iterations: 2\}"):
        load_recipe("mnist/dr_capsnet", changes=changes)
