"""Which variants of a SegCaps help, by rows that were made, and the recipe that then holds them."""

from importlib.resources import files

import pytest
from experiments.made_rows import a_row

from torchcaps.experiments import EXPERIMENTS
from torchcaps.experiments.lung.segcaps_plus import (
    BASELINE,
    LABEL,
    METRIC,
    VARIANTS,
    helpful_variants,
    plus_changes,
)
from torchcaps.models import build_model
from torchcaps.train import load_recipe

EM, ATTENTION, SUPERVISION, BORDER = VARIANTS


def rows(dice, seeds=3):
    found = [
        a_row(
            BASELINE if name == BASELINE else f"{BASELINE}, {name}",
            METRIC,
            value,
            spread=0.005 if seeds > 1 else None,
            seeds=seeds,
        )
        for name, value in dice.items()
    ]
    return lambda label: found


def verdicts(rows_of):
    return [claim.check(rows_of).verdict for claim in EXPERIMENTS[LABEL].claims]


def test_claims_say_of_each_variant_whether_it_helps():
    found = rows({BASELINE: 0.6, EM: 0.65, ATTENTION: 0.5, SUPERVISION: 0.602, BORDER: 0.7})
    assert verdicts(found) == ["beyond", "not confirmed", "open", "beyond", "beyond"]
    assert helpful_variants(found) == [BORDER, EM]
    assert "segcaps_plus sets" in EXPERIMENTS[LABEL].claims[-1].check(found).because


def test_one_of_several_variants_has_to_help_by_more_than_one_alone():
    """A gain of 0.013 is 3.2 standard errors of 0.005 over 3 seeds each: enough for one, not for four."""
    found = rows({BASELINE: 0.6, EM: 0.613, ATTENTION: 0.6, SUPERVISION: 0.6, BORDER: 0.6})
    assert verdicts(found) == ["beyond", "open", "open", "open", "open"]
    assert plus_changes(found) == {}


def test_of_two_routings_the_better_is_kept():
    both = rows({BASELINE: 0.6, EM: 0.65, ATTENTION: 0.7, SUPERVISION: 0.66, BORDER: 0.6})
    assert plus_changes(both) == {"model.bottom_routing": "self_attention", "model.deep_supervision": True}
    other = rows({BASELINE: 0.6, EM: 0.72, ATTENTION: 0.7, SUPERVISION: 0.6, BORDER: 0.6})
    assert plus_changes(other) == {"model.bottom_routing": "em"}


def test_without_rows_or_with_one_seed_nothing_is_decided():
    every = dict.fromkeys((BASELINE, *VARIANTS), 0.6)
    for found in (rows({}), rows({BASELINE: 0.6, EM: 0.7}, seeds=1), rows(every, seeds=1)):
        assert verdicts(found) == ["open"] * 5
        assert plus_changes(found) == {}


def test_where_nothing_helps_the_claim_says_so():
    worse = rows({BASELINE: 0.6, **dict.fromkeys(VARIANTS, 0.5)})
    assert verdicts(worse) == ["not confirmed"] * 5


@pytest.mark.parametrize("routing", [EM, ATTENTION])
def test_segcaps_plus_is_one_recipe_file(tmp_path, routing):
    """All that helps, written into a copy of the recipe, is a recipe whose network can be built."""
    found = rows({BASELINE: 0.6, EM: 0.6, ATTENTION: 0.6, SUPERVISION: 0.7, BORDER: 0.7} | {routing: 0.7})
    changes = plus_changes(found)
    text = (files("torchcaps") / "recipes" / "lung" / "segcaps_r3.yaml").read_text(encoding="utf-8")
    text = text.replace(
        "{name: segcaps_r3}",
        f"{{name: segcaps_r3, bottom_routing: {changes['model.bottom_routing']}, deep_supervision: true}}",
    ).replace("positive_weight: 5", f"positive_weight: 5, border_weight: {changes['loss.border_weight']}")
    recipe = tmp_path / "segcaps_plus.yaml"
    recipe.write_text(text, encoding="utf-8")
    loaded = load_recipe(str(recipe))
    assert loaded == load_recipe("lung/segcaps_r3", changes=changes)
    assert len(build_model(loaded.model).deep) == 2
