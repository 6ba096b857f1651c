import pytest

from torchcaps.storage import distinct_stems


@pytest.mark.parametrize(
    ("names", "stems"),
    [
        (["x~2.png", "x.png", "dir/x.png"], ["x~2", "x", "x~3"]),
        (["x.png", "dir/x.png", "x~2.png"], ["x", "x~2", "x~2~2"]),
        (["index.png", "ok.png", "Index.png"], ["index~2", "ok", "Index~3"]),
        (["test:3", "test-3.png"], ["test-3", "test-3~2"]),
    ],
)
def test_no_two_files_have_one_name(names, stems):
    assert distinct_stems(names, reserved=["index"]) == stems
