import pytest

from torchcaps.core import counted, markdown_table, say_truth

MEASURED = {
    "accuracy": 23 / 24,
    **{
        f"{kind}tree_{name}": value
        for kind, value in (("", 0.2), ("even_", 0.1), ("random_", 0.15))
        for name in ("precision", "recall")
    },
}


def test_one_thing_is_not_several():
    said = [counted(number, "patient") for number in (0, 1, 2, 1200)]
    assert said == ["0 patients", "1 patient", "2 patients", "1,200 patients"]


def test_a_table_has_a_line_for_its_columns_and_one_for_each_row():
    table = markdown_table(("name", "count"), [("a", 1), ("b", "")])
    assert table == "| name | count |\n| --- | --- |\n| a | 1 |\n| b |  |\n"


@pytest.mark.parametrize(
    ("changes", "is_better"),
    [({}, True), ({"even_tree_precision": 0.2}, False), ({"random_tree_precision": 0.3}, False)],
)
def test_trees_are_not_those_of_the_parts_unless_they_are_more_precise_than_both_others(changes, is_better):
    words = say_truth({**MEASURED, **changes}, "these 24 images")
    assert words.endswith("Carved trees are more precise than both others.") is is_better
    assert words.endswith("they are not the trees of the parts.") is not is_better


def test_the_worth_of_routing_is_said_where_it_was_measured():
    assert "95.8% of these 24 images. " in say_truth(MEASURED, "these 24 images")
    evened = say_truth({**MEASURED, "accuracy_with_even": 0.25}, "these 24 images")
    assert "95.8% of these 24 images, and of 25.0% when all its couplings are made even. " in evened
