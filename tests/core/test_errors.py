from torchcaps.core import unknown_name


def test_a_message_lists_few_names():
    words = str(unknown_name("dataset", "xyz", [f"name{number:02}" for number in range(30)]))
    assert "name19 and 10 more" in words
    assert "name20" not in words
    assert str(unknown_name("dataset", "xyz", [])).endswith("known: none")
