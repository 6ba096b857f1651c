from explorer.conftest import save_run

from torchcaps.pages import TrueTrees, true_trees
from torchcaps.train import load_run


def test_a_branch_begins_at_a_pixel_of_the_part_that_it_is_coloured_as(tmp_path, monkeypatch):
    data = "partwhole:classes=3,branches=3,train=4,test=4"
    folder = save_run(tmp_path / "parts", data=data, classes=tuple("012"), image_size=32)
    trees, drawn = TrueTrees(load_run(folder), 2), []
    monkeypatch.setattr(true_trees, "draw_true_trees", lambda images, rows, **names: drawn.extend(rows))
    trees.draw(range(2))
    parts = set()
    for owners, row in zip(trees.drawn.owners, drawn, strict=True):
        for name in ("carved", "even couplings"):
            for branch in row[name].branches:
                owner = int(owners[int(branch.y), int(branch.x)])
                assert branch.part == (owner - 1 if 1 <= owner <= trees.drawn.tree.num_parts else None)
                parts.add(branch.part)
    assert len(parts) > 2  # several parts are met
