"""The benchmark: arithmetic by hand, and every suite on sizes that take no time."""

import gc
import json
import sys
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path

import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from torchcaps.bench import (
    Bench,
    Ceilings,
    Cost,
    Effort,
    LayerSize,
    Measurement,
    TrainCase,
    measure_ceilings,
    memory,
    model_suite,
    read_rows,
    routing_suite,
    run_bench,
    train_suite,
    write_chart,
)
from torchcaps.bench.backend import kernel_free
from torchcaps.bench.chart import device_slug
from torchcaps.bench.layer import _why_not_plain
from torchcaps.bench.memory import MIB, PeakMemory
from torchcaps.bench.model import model_names
from torchcaps.bench.roofline import model_cost
from torchcaps.bench.timing import Timing, summarise, time_by_turns, time_work, wall_laps
from torchcaps.cli.main import app
from torchcaps.core import UserError
from torchcaps.data import DATASETS
from torchcaps.kernels import dynamic_unsupported_reason
from torchcaps.models import MODELS, create_model
from torchcaps.viz import draw_bench, to_png

CPU = torch.device("cpu")
RATES = Ceilings(copy_gb_s=100.0, matmul_tflops_fp32=1.0, matmul_tflops_tf32=None, matmul_tflops_bf16=2.0)
ONCE = Effort(warm_ups=0, seconds=0.0, least=2, most=2)
TINY = LayerSize(batch=2, in_caps=6, in_pose=4, out_caps=3, out_pose=5)
REQUIRED = {
    "suite",
    "case",
    "backend",
    "device",
    "batch",
    "ms",
    "spread",
    "img_s",
    "peak_mb",
    "torch",
    "commit",
}
ROOFLINE = {"flops", "bytes", "floor_ms", "share_of_ceiling"}
TINY_MODEL = {"model.name": "dr_capsnet_tiny_test", "model.image_size": 28, "model.num_classes": 10}


@pytest.fixture(autouse=True)
def _own_datasets(monkeypatch):
    """Suites register the datasets that they draw; other tests must not see them."""
    monkeypatch.setattr(DATASETS, "_entries", dict(DATASETS._entries))


@pytest.fixture(autouse=True)
def _keep_frozen(monkeypatch):
    """Each measurement collects garbage, and would look through all that the tests imported."""
    monkeypatch.setattr(gc, "unfreeze", lambda: None)


def bench(suite="routing", **settings):
    return Bench(suite, CPU, ceilings=RATES, effort=ONCE, **settings)


def tiny_routing(into, **settings):
    curves = {"batch": (1, 2), "iterations": (1, 3)}
    many = replace(TINY, out_caps=20)
    return routing_suite(into, base=TINY, many=many, curves=curves, **settings)


def point(build, case="work", **settings):
    return Measurement(case=case, backend="torch", batch=8, build=build, **settings)


def run_out_of_memory():
    raise torch.OutOfMemoryError("no more\ndetails")


def assert_measured(rows):
    assert rows
    for row in rows:
        assert row.keys() >= REQUIRED
        assert "error" not in row, row["error"]
        assert row["ms"] > 0
        assert row["spread"] >= 0
        assert row["peak_mb"] >= 0


class TestTiming:
    def test_each_lap_is_timed_alone(self):
        readings = iter([0.0, 0.001, 5.0, 5.004, 9.0, 9.002])  # what passes between laps does not count
        calls = []
        laps = wall_laps(
            lambda: calls.append("work"), 3, lambda: calls.append("between"), lambda: next(readings)
        )
        assert laps == pytest.approx([1.0, 4.0, 2.0])
        assert calls == ["between", "work"] * 3

    def test_median_and_spread_by_hand(self):
        timing = summarise([4.0, 1.0, 2.0, 100.0, 3.0])
        assert timing.ms == 3.0
        assert timing.spread == pytest.approx((4.0 - 2.0) / 3.0)
        assert timing.repeats == 5
        assert timing.best == 1.0
        assert summarise([2.0]).spread == 0.0
        assert summarise([1.0, 2.0]).ms == 1.5
        assert summarise([1.0, 2.0, 3.0, 4.0]).spread == pytest.approx((3.25 - 1.75) / 2.5)  # between laps

    def test_repeats_stay_within_their_limits(self):
        calls = []
        effort = Effort(warm_ups=3, seconds=0.0, least=4, most=9)
        assert time_work(lambda: calls.append(1), CPU, effort).repeats == 4
        assert len(calls) == 1 + 1 + 4  # the warm-up is over when its time is
        eager = replace(effort, seconds=100.0)
        assert time_work(lambda: None, CPU, eager).repeats == 9

    def test_works_take_turns(self):
        calls = []
        effort = Effort(warm_ups=1, seconds=0.0, least=2, most=9)
        works = [lambda name=name: calls.append(name) for name in "ab"]
        assert [timing.repeats for timing in time_by_turns(works, CPU, effort)] == [2, 2]
        assert calls == ["a", "b", "a", "b", *"ab" * 2]  # warm-up, first, then the turns

    def test_the_slowest_of_several_works_decides_how_many_turns_there_is_time_for(self, monkeypatch):
        monkeypatch.setattr("torchcaps.bench.timing.wall_laps", lambda work, repeats: [work()] * repeats)
        effort = Effort(warm_ups=0, seconds=1.0, least=2, most=1000)
        fast, slow = time_by_turns([lambda: 1.0, lambda: 100.0], CPU, effort)
        assert (fast.repeats, slow.repeats) == (10, 10)
        assert (fast.ms, slow.ms) == (1.0, 100.0)


class TestRoofline:
    def test_the_floor_is_the_slower_of_computing_and_moving(self):
        assert Cost(flops=10**9, bytes=0).floor_ms(RATES) == pytest.approx(1.0)
        assert Cost(flops=10**9, bytes=0).floor_ms(RATES, "bf16") == pytest.approx(0.5)
        assert Cost(flops=10**9, bytes=10**9).floor_ms(RATES) == pytest.approx(10.0)

    def test_the_layer_of_dr_capsnet_by_hand(self):
        votes = 128 * 1152 * 10 * 16
        forward = LayerSize(backward=False).cost
        assert forward.flops == 2 * votes * (8 + 3 + 2)  # form the vote, pool three times, agree twice
        assert forward.bytes == 4 * (128 * 1152 * 8 + 1152 * 8 * 10 * 16 + 128 * 10 * 16)
        full, last = LayerSize().cost, LayerSize(gradient="last").cost
        assert last.flops - forward.flops == 2 * votes * (8 + 8 + 1)
        assert full.flops - forward.flops == 2 * votes * (8 + 8 + 3 + 2 + 4)
        assert full.bytes == last.bytes == 3 * forward.bytes - 4 * 128 * 10 * 16

    def test_limiting_votes_costs_what_it_takes_by_hand(self):
        votes = 128 * 1152 * 10 * 16
        distance, dynamic = LayerSize(routing="scaled_distance").cost, LayerSize().cost
        assert distance.flops - dynamic.flops == 2 * votes * (1 + 1 + 3)  # length, shortening, and back
        assert distance.bytes == dynamic.bytes

    def test_three_tf32_products_may_make_a_float32_one(self):
        rates = replace(RATES, matmul_tflops_tf32=9.0)
        assert rates.tflops("32") == 3.0
        assert replace(RATES, matmul_tflops_tf32=1.5).tflops("32") == 1.0

    def test_a_model_moves_its_weights_and_images_by_hand(self):
        weights = sum(each.numel() for each in create_model("dr_capsnet_tiny_test").parameters())
        passes = {
            (False, False): 1,
            (True, False): 3,  # read twice, gradients written
            (True, True): 3 + 7,  # Adam reads gradient, weight and moments, and writes all but the gradient
        }
        forward = model_cost("dr_capsnet_tiny_test", 8, {})
        for (backward, adam), count in passes.items():
            cost = model_cost("dr_capsnet_tiny_test", 8, {}, backward=backward, adam=adam)
            assert cost.bytes == 4 * (count * weights + 8 * 20 * 20)
            assert cost.flops == forward.flops * (3 if backward else 1)

    def test_rates_are_what_is_moved_and_computed_in_the_shortest_time(self, monkeypatch):
        timing = Timing(ms=3.0, spread=0.1, repeats=5, best=2.0)
        monkeypatch.setattr("torchcaps.bench.roofline.time_work", lambda *_: timing)
        found = measure_ceilings(CPU)
        assert found.copy_gb_s == pytest.approx(2 * 4 * 2**25 / 2e-3 / 1e9)  # read and written
        assert found.matmul_tflops_fp32 == pytest.approx(2 * 1024**3 / 2e-3 / 1e12)

    def test_ceilings_are_positive(self):
        found = measure_ceilings(CPU).as_json()
        assert found.pop("matmul_tflops_tf32") is None
        assert all(rate > 0 for rate in found.values())


def test_peak_memory_sees_what_was_freed_again():
    peak = PeakMemory(CPU)
    torch.ones(64 * MIB // 4).sum()
    assert 50 < peak.mebibytes() < 100


@pytest.mark.slow
def test_where_the_system_does_not_tell_the_peak_is_unknown(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "_STATUS", tmp_path / "none")
    assert PeakMemory(CPU).mebibytes() is not None
    monkeypatch.setitem(sys.modules, "resource", None)  # Windows has no such module
    assert PeakMemory(CPU).mebibytes() is None
    assert bench().measure(point(lambda: lambda: None))["peak_mb"] is None


class TestBench:
    def test_images_a_second_are_those_of_a_call(self, monkeypatch):
        timing = Timing(ms=20.0, spread=0.0, repeats=1, best=20.0)
        monkeypatch.setattr("torchcaps.bench.bench.time_work", lambda *_: timing)
        assert bench().measure(point(lambda: list))["img_s"] == 8 / 0.02
        assert bench().measure(point(lambda: list, images=1000))["img_s"] == 1000 / 0.02  # of an epoch

    def test_points_of_two_curves_are_two_rows(self):
        points = [point(lambda: list, facts={"curve": name}) for name in ("batch", "iterations")]
        assert [row["curve"] for row in bench().run(points)["rows"]] == ["batch", "iterations"]

    def test_an_error_is_a_row_and_the_others_go_on(self):
        def fail():
            raise RuntimeError("broken\nwith details")

        rows = bench().run([point(fail), point(lambda: lambda: None, "more work")])["rows"]
        assert rows[0]["error"] == "RuntimeError: broken"
        assert rows[0]["ms"] is None
        assert_measured(rows[1:])

    def test_out_of_memory_names_batch_and_sizes(self):
        measured = bench()
        row = measured.run([point(run_out_of_memory, sizes="votes 8x3")])["rows"][0]
        assert row["error"].startswith("out of memory at batch 8 (votes 8x3)")
        assert row["error"].endswith("try a batch of 2")
        assert measured.ran_out_of_memory

    def test_what_is_skipped_is_not_built(self):
        row = bench().measure(point(run_out_of_memory, skip="too large"))
        assert row["skipped"] == "too large"
        assert "error" not in row

    def test_no_measurement_is_begun_after_the_minutes(self, tmp_path):
        measured = bench(minutes=1e-9, file=tmp_path / "rows.json")
        assert measured.run([point(lambda: lambda: None)])["rows"] == []
        assert read_rows(tmp_path / "rows.json") == []

    def test_each_row_is_in_the_file_before_the_next_is_measured(self, tmp_path):
        file, seen = tmp_path / "deep" / "rows.json", []

        def points():
            for number in range(3):
                yield point(lambda: lambda: None, f"work {number}")
                seen.append(len(read_rows(file)))

        bench(file=file).run(points())
        assert seen == [1, 2, 3]

    def test_a_suite_that_does_not_exist_is_an_error(self):
        with pytest.raises(UserError, match="did you mean routing"):
            run_bench("routin", CPU)


class TestRouting:
    def test_plain_and_fused_stand_side_by_side(self):
        measured = bench()
        rows = measured.run(tiny_routing(measured))["rows"]
        assert_measured(rows)
        assert all(row.keys() >= ROOFLINE for row in rows)
        assert {row["backend"] for row in rows} == {"torch", "fused"}
        assert {row["batch"] for row in rows} == {1, 2, 16}
        assert {row["gradient"] for row in rows} == {"full", "last", None}
        assert [row["batch"] for row in rows if row["curve"] == "batch"] == [1, 1, 2, 2]
        dynamic = [row for row in rows if row["routing"] == "dynamic"]
        cases = [(row["case"], row["batch"], row["curve"]) for row in dynamic]
        assert cases[::2] == cases[1::2]

    def test_scaled_distance_is_measured_plain_where_it_has_no_kernel(self):
        measured = bench()
        rows = [row for row in measured.run(tiny_routing(measured))["rows"] if row["routing"] != "dynamic"]
        assert {row["backend"] for row in rows} == {"torch"}
        assert {row["case"] for row in rows} == {"6x4 -> 32x8, r=3, scaled distance, forward+backward, full"}

    @pytest.mark.parametrize(
        ("changes", "copies"),
        [({"backward": False}, 2), ({"gradient": "last"}, 3), ({"gradient": "full"}, 8)],
    )
    def test_the_plain_path_is_left_out_where_its_tensors_fill_nine_tenths(
        self, changes, copies, monkeypatch
    ):
        size = replace(TINY, **changes)
        needed = 4 * copies * size.batch * size.in_caps * size.out_caps * size.out_pose
        for free, fits in ((needed / 0.89, True), (needed / 0.91, False)):
            monkeypatch.setattr("torchcaps.bench.layer.free_memory", lambda device, free=free: int(free))
            assert (_why_not_plain(size, CPU) is None) is fits

    def test_votes_that_would_not_fit_are_not_formed(self):
        measured = bench()
        huge = replace(TINY, batch=1 << 40)
        points = list(routing_suite(measured, quick=True, base=huge, many=huge, curves={}))
        plain = [measured.measure(p) for p in points if p.backend == "torch"]
        assert all("GiB are free" in row["skipped"] for row in plain)
        assert all(p.skip is None for p in points if p.backend == "fused")


class TestTrain:
    def test_steps_and_epochs_go_through_the_session(self):
        measured = bench("train")
        step = TrainCase(recipe="mnist/dr_capsnet", batch=4, changes=TINY_MODEL)
        epoch = replace(step, images=12, validation=3)
        rows = measured.run(train_suite(measured, quick=True, steps=(step,), epochs=(epoch,)))["rows"]
        assert_measured(rows)
        assert [(row["pass"], row["backend"]) for row in rows] == [
            ("step", "torch"),
            ("step", "fused"),
            ("epoch", "fused"),
        ]
        assert rows[0].keys() >= ROOFLINE
        assert rows[2]["img_s"] == pytest.approx(12_000 / rows[2]["ms"], rel=1e-3, abs=0.06)  # one decimal

    def test_an_epoch_is_not_tried_on_a_cpu(self):
        measured = bench("train")
        step = TrainCase(recipe="mnist/dr_capsnet", batch=4, changes=TINY_MODEL)
        *_, last = train_suite(measured, quick=True, steps=(step,))
        assert "minutes on a CPU" in last.skip


class TestModels:
    def test_models_are_measured_plain_and_fused_where_a_kernel_exists(self):
        measured = bench("models")
        names = ["dr_capsnet_tiny_test", "efficient_capsnet_tiny_test"]
        rows = measured.run(model_suite(measured, names=names, batch=2))["rows"]
        assert_measured(rows)
        assert [(row["model"][:2], row["pass"], row["backend"]) for row in rows] == [
            ("dr", "forward", "torch"),
            ("dr", "forward", "fused"),
            ("dr", "forward+backward", "torch"),
            ("dr", "forward+backward", "fused"),
            ("ef", "forward", "torch"),
            ("ef", "forward+backward", "torch"),
        ]
        assert all(row["params"] > 0 for row in rows)

    def test_a_model_that_does_not_fit_is_tried_smaller(self):
        measured = bench("models")
        points = model_suite(measured, names=["efficient_capsnet_tiny_test"], batch=8)
        first = next(points)
        measured.run([replace(first, build=run_out_of_memory)])
        assert next(points).batch == 2

    def test_every_family_is_in_the_quick_suite_once_and_no_test_model(self):
        names = model_names(quick=True)
        assert "efficient_capsnet_mnist" in names
        assert len(names) == len({MODELS[name].family for name in names}) < len(model_names())
        assert not any(name.endswith("_test") for name in model_names())

    def test_kernels_are_found_by_asking_the_layers(self):
        assert not kernel_free("dr_capsnet_tiny_test", CPU)
        assert kernel_free("efficient_capsnet_tiny_test", CPU)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    file = tmp_path_factory.mktemp("results") / "routing--cpu.json"
    measured = bench(file=file)
    measured.run(tiny_routing(measured))
    return file


class TestChart:
    def test_a_chart_is_drawn_from_a_file(self, file, tmp_path):
        target = write_chart([file], tmp_path / "gallery")
        assert target == tmp_path / "gallery" / "routing-cpu.png"
        with Image.open(target) as picture:
            assert picture.width > 1000

    def test_rows_without_a_time_are_drawn_as_words(self, file):
        rows = read_rows(file)
        rows[0] = {**rows[0], "ms": None, "skipped": "too large"}
        with Image.open(BytesIO(to_png(draw_bench(rows)))) as picture:
            assert picture.height > 100

    def test_nothing_to_draw_is_an_error(self, tmp_path, file):
        with pytest.raises(UserError, match="no results at"):
            write_chart([tmp_path / "none.json"], tmp_path)
        for content in (b"[]", b"no JSON", b"\xff\xd8 a photograph"):
            (tmp_path / "other.json").write_bytes(content)
            with pytest.raises(UserError, match="no benchmark results"):
                write_chart([tmp_path / "other.json"], tmp_path)
        rows = [{**row, "ms": None} for row in read_rows(file)]
        with pytest.raises(UserError, match="no measurement"):
            draw_bench(rows)

    def test_devices_have_short_names(self):
        assert device_slug("NVIDIA H200") == "h200"
        assert device_slug("cpu, 2 threads") == "cpu"


@pytest.mark.slow
def test_the_command_prints_a_table_and_writes_the_file(monkeypatch, tmp_path):
    from torchcaps.bench import run

    monkeypatch.setitem(run.SUITES, "routing", tiny_routing)
    monkeypatch.setattr("torchcaps.bench.run.measure_ceilings", lambda device: RATES)
    file = tmp_path / "rows.json"
    command = ["bench", "routing", "--quick", "--device", "cpu", "--out", str(file), "--no-compile"]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 0
    assert "6x4 -> 3x5, r=3, forward+backward, full" in done.output
    assert "curve of batch" in done.output  # such a row may have the same words as another
    results = json.loads(file.read_text())
    assert results["ceilings"] == RATES.as_json()
    assert results["provenance"]["versions"]["torch"] == torch.__version__
    assert f"{len(results['rows'])} rows in" in done.output.replace("\n", " ")
    printed = CliRunner().invoke(app, [*command, "--json"], catch_exceptions=False)
    assert json.loads(printed.stdout)["rows"] == json.loads(file.read_text())["rows"]
    drawn = CliRunner().invoke(app, ["bench", "chart", str(file), "--out", str(tmp_path)])
    assert (tmp_path / "routing-cpu.png").is_file(), drawn.output


class TestGoingOn:
    def points(self, made):
        def build(name):
            made.append(name)
            return lambda: None

        names = ("torch", "fused")
        return [Measurement(case="work", backend=name, batch=8, build=partial(build, name)) for name in names]

    def test_rows_of_this_commit_are_not_measured_again(self):
        made = []
        first = bench().run(self.points(made)[:1])["rows"]
        both = bench().run(self.points(made), first)["rows"]
        assert made == ["torch", "fused"]
        assert [row["backend"] for row in both] == ["torch", "fused"]
        assert both[0] is first[0]

    @pytest.mark.parametrize("name", ["commit", "device"])
    @pytest.mark.slow
    def test_rows_of_elsewhere_are_replaced_where_they_are_measured_again(self, name):
        made = []
        old = [{**row, name: "other"} for row in bench().run(self.points([]))["rows"]]
        rows = bench().run(self.points(made)[1:], old)["rows"]
        assert made == ["fused"]
        assert [row[name] == "other" for row in rows] == [True, False]

    @pytest.mark.slow
    def test_a_size_that_did_not_fit_is_remembered(self):
        first = bench()
        rows = first.run([point(run_out_of_memory)])["rows"]
        assert first.ran_out_of_memory
        again = bench()
        again.run([point(lambda: pytest.fail("it is known not to fit"))], rows)
        assert again.ran_out_of_memory

    def test_a_file_is_gone_on_with_only_when_asked(self, tmp_path, monkeypatch):
        monkeypatch.setattr("torchcaps.bench.run.measure_ceilings", lambda device: RATES)
        file = tmp_path / "routing.json"
        row = {"suite": "routing", "case": "kept", "backend": "torch", "batch": 1}
        file.write_text(json.dumps({"rows": [row]}))
        shared = {"quick": True, "file": file, "minutes": 1e-9}
        rows = run_bench("routing", CPU, goes_on=True, **shared)["rows"]
        assert [row["case"] for row in rows] == ["kept"]
        assert run_bench("routing", CPU, **shared)["rows"] == []
        with pytest.raises(UserError, match="name it with --out"):
            run_bench("routing", CPU, goes_on=True)


@pytest.mark.gpu
def test_every_backend_of_the_layer_runs_on_a_gpu():
    device = torch.device("cuda")
    measured = Bench("routing", device, ceilings=measure_ceilings(device), effort=ONCE)
    size = replace(TINY, batch=8, in_pose=8, out_pose=16)
    points = routing_suite(measured, quick=True, base=size, many=size, curves={})
    rows = measured.run(points)["rows"]
    assert_measured(rows)
    names = {"torch", "compiled", "fused"}
    assert {row["backend"] for row in rows} == names | {f"{name}+graph" for name in names}


@pytest.mark.gpu
def test_steps_are_captured_on_a_gpu():
    measured = Bench("train", torch.device("cuda"), ceilings=RATES, effort=ONCE)
    case = TrainCase(recipe="mnist/dr_capsnet", batch=8, changes=TINY_MODEL)
    epoch = replace(case, images=64, validation=8)
    rows = measured.run(train_suite(measured, quick=True, steps=(case,), epochs=(epoch,)))["rows"]
    assert_measured(rows)
    backends = ["torch", "fused", "torch+graph", "fused+graph", "fused+compile+graph"]
    assert [row["backend"] for row in rows] == [*backends, "fused+compile+graph"]


def test_auto_takes_no_path_that_was_measured_to_be_slower_on_a_cpu():
    file = Path(__file__).parents[2] / "benchmarks" / "results" / "routing--cpu.json"
    times = {}
    for row in read_rows(file):
        if row["routing"] == "dynamic" and row["ms"] is not None:
            sizes = (row["batch"], row["in_caps"], row["out_caps"])
            times.setdefault((sizes, row["case"], row["curve"]), {})[row["backend"]] = row["ms"]
    both = {key: found for key, found in times.items() if {"torch", "fused"} <= found.keys()}
    assert len(both) > 10
    for (sizes, *_), found in both.items():
        batch, children, parents = sizes
        poses = torch.empty(1).expand(batch, children, 8)
        weight = torch.empty(1).expand(children, 8, parents, 16)
        is_plain = dynamic_unsupported_reason(poses, weight, insist=False) is not None
        assert found["torch" if is_plain else "fused"] <= found["torch"], sizes
