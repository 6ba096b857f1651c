"""A small terrain, a descriptor of it that needs no training, and the map compiled with it."""

from types import SimpleNamespace

import pytest

from torchcaps.apps.uav import AbBrief, CompileSettings, Terrain, compile_map, measure_matching, open_map


@pytest.fixture(scope="session")
def country(tmp_path_factory):
    stack = Terrain(seed=4).draw(900.0, 600.0, 10.0)
    describer = AbBrief(side=16, size=32)
    matching = measure_matching(describer, [Terrain(seed=4).draw(3000.0, 1200.0, 10.0)])
    path = tmp_path_factory.mktemp("country") / "summer.tcmap"
    settings = CompileSettings(cell=30.0, headings=12, storage="float32")
    compile_map(stack.dates(["summer"]), describer, path, settings)
    return SimpleNamespace(
        stack=stack, describer=describer, matching=matching, path=path, map=open_map(path), settings=settings
    )
