"""Exported files against the networks they came from, and files that nobody should open."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import torchcaps
from torchcaps.core import Capsules, MissingDataError, UserError
from torchcaps.layers import FcCaps
from torchcaps.models import MODELS, create_model, list_models
from torchcaps.routing import list_routings
from torchcaps.train import Run, export_run, load_predictor, open_exported
from torchcaps.train.export import Exported
from torchcaps.train.export.card import CARD
from torchcaps.train.export.operators import OPERATORS
from torchcaps.train.export.write import inference_network
from torchcaps.train.recipe import build
from torchcaps.zoo import predict

pytestmark = pytest.mark.compile  # what checks shapes at run time cannot be exported
pytest.importorskip("onnxruntime")

SUFFIX = {"onnx": ".onnx", "torch-export": ".pt2"}
QUICK = ("dr_capsnet_tiny_test", "efficient_capsnet_tiny_test")
FAMILIES = [
    pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow])
    for name in list_models("*_tiny_test")
    if MODELS[name].task == "classification" or name == "em_posenet_tiny_test"
]


def tiny_run(name="dr_capsnet_tiny_test", **changes):
    """A run that was never trained, on images of the size it takes."""
    torch.manual_seed(0)
    model = create_model(name, **changes).eval()
    data = {"name": "synthetic_mnist", "preprocess": {"resize": model.config.image_size}}
    recipe = build({"model": {"name": name, **changes}, "data": data, "epochs": 1})
    return Run(Path("nowhere"), recipe, model, 7)


def outputs(model, images):
    with torch.no_grad():
        return [value for value in model(images)[:3] if value is not None]


@pytest.mark.parametrize("format", SUFFIX)
@pytest.mark.parametrize("name", FAMILIES)
def test_a_file_gives_what_its_network_gives_for_any_batch(name, format, tmp_path):
    run = tiny_run(name)
    path = tmp_path / f"model{SUFFIX[format]}"
    written = export_run(run, path, format)
    assert written["largest_difference"] < 1e-4
    exported = open_exported(path, trust=True)
    for batch in (1, 3):
        images = torch.randn(batch, *run.model.image_shape)
        expected = outputs(run.model, images)
        found = exported.run(images)
        assert len(found) == len(expected) == len(exported.card.outputs)
        for ours, theirs in zip(expected, found, strict=True):
            assert float((ours - theirs).abs().max()) < 1e-4  # at most 3e-6 for EM, 2e-7 for others


@pytest.mark.parametrize("count", [6, 300])  # many children may be routed by other operators
@pytest.mark.parametrize("name", list_routings())
def test_every_routing_is_made_of_operators_that_a_file_may_name(name, count):
    layer = FcCaps(count, 4, 3, 5, routing=name, backend="torch").eval()
    children = Capsules(torch.randn(2, count, 3), torch.rand(2, count))
    with torch.no_grad():
        program = torch.export.export(layer, (children,), strict=False)
    graphs = [part.graph for part in program.graph_module.modules() if hasattr(part, "graph")]
    targets = {node.target for graph in graphs for node in graph.nodes if node.op == "call_function"}
    named = {str(each) for each in targets if isinstance(each, torch._ops.OpOverload)}
    assert named
    assert not {each for each in named if f"torch.ops.{each}" not in OPERATORS}


@pytest.mark.parametrize("format", SUFFIX)
def test_a_network_with_silent_capsules_is_exported_for_any_batch(format, tmp_path):
    run = tiny_run(voters=5, decoder="none")
    run.model.classes.voters.copy_(torch.tensor([1, 2, 4, 6, 7]))
    path = tmp_path / f"model{SUFFIX[format]}"
    export_run(run, path, format)
    exported = open_exported(path, trust=True)
    for batch in (1, 3):
        images = torch.randn(batch, *run.model.image_shape)
        for ours, theirs in zip(outputs(run.model, images), exported.run(images), strict=True):
            torch.testing.assert_close(theirs, ours, atol=1e-5, rtol=0)


def fixed_batch(images):
    raise RuntimeError("expected a batch of 2")


def other_numbers(images):
    return torch.ones(3, 4), torch.ones(3, 4, 6)


@pytest.mark.parametrize(
    ("run", "message"),
    [(fixed_batch, "fails on a batch of three: expected a batch of 2"), (other_numbers, "other activations")],
)
def test_a_file_that_would_be_wrong_is_not_written(run, message, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "torchcaps.train.export.write.exported_from", lambda content, path: Exported(None, run)
    )
    with pytest.raises(UserError, match=rf"{message}.*model\.pt2 was not written"):
        export_run(tiny_run(decoder="none"), tmp_path / "model.pt2", "torch-export")
    assert not list(tmp_path.iterdir())


def test_what_onnx_cannot_say_is_named(tmp_path):
    run = tiny_run(routing="variational_bayes", decoder="none")
    with pytest.raises(UserError, match=r"cannot be written as ONNX: .*digamma.* --format torch-export"):
        export_run(run, tmp_path / "model.onnx", "onnx")
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module", params=SUFFIX)
def exported(request, tmp_path_factory):
    """A run with ten classes, and the file it was exported to."""
    run = tiny_run(image_size=28, num_classes=10)
    path = tmp_path_factory.mktemp("export") / f"model{SUFFIX[request.param]}"
    export_run(run, path, request.param)
    return run, path


def test_the_network_that_is_exported_is_a_plain_copy():
    run = tiny_run()
    network = inference_network(run.model.train(), run.task)
    layers = [layer for layer in network.modules() if isinstance(layer, FcCaps)]
    assert [layer.backend for layer in layers] == ["torch"]
    assert run.model.classes.backend == "auto"
    assert run.model.training
    assert not network.training
    assert run.model.stem.weight.requires_grad


def test_a_file_says_what_an_image_needs(exported):
    run, path = exported
    card = open_exported(path, trust=True).card
    assert card.recipe == run.recipe
    assert card.classes == tuple("0123456789")
    assert (card.input, card.channels, card.height, card.width) == ((1, 28, 28), 1, 28, 28)
    assert len(card.mean) == len(card.std) == 1
    assert card.outputs == ("activations", "poses", "reconstruction")
    assert (card.epoch, card.version) == (7, torchcaps.__version__)


def test_images_are_classified_as_the_run_does(exported, tmp_path):
    run, path = exported
    for index in range(3):
        pixels = np.random.default_rng(index).integers(0, 255, (28, 28), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{index}.png")
    images = sorted(tmp_path.glob("*.png"))
    ours, theirs = predict(run, images), predict(load_predictor(path, trust=True), images)
    assert [row["class"] for row in ours] == [row["class"] for row in theirs]
    for first, second in zip(ours, theirs, strict=True):
        assert first["activations"] == pytest.approx(second["activations"], abs=1e-5)


def test_a_file_that_takes_other_images_than_its_recipe_makes_says_so(tmp_path):
    run = tiny_run("efficient_capsnet_tiny_test", in_channels=2)
    export_run(run, tmp_path / "two.onnx")
    Image.fromarray(np.zeros((28, 28), dtype=np.uint8)).save(tmp_path / "0.png")
    with pytest.raises(UserError, match=r"takes images of 2x20x20, but its recipe makes 1x20x20"):
        predict(load_predictor(tmp_path / "two.onnx"), tmp_path / "0.png")


def test_a_file_tells_nothing_about_the_machine_that_wrote_it(exported):
    content = exported[1].read_bytes()
    if zipfile.is_zipfile(exported[1]):
        with zipfile.ZipFile(exported[1]) as archive:
            content = b"".join(archive.read(name) for name in archive.namelist())
    for folder in (Path(torchcaps.__file__).parent, Path(torch.__file__).parent, Path(__file__).parent):
        assert str(folder).encode() not in content


def test_onnx_has_names_and_a_free_batch(tmp_path):
    import onnx

    path = tmp_path / "model.onnx"
    export_run(tiny_run(decoder="none"), path, "onnx")
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert [value.name for value in model.graph.input] == ["images"]
    assert [value.name for value in model.graph.output] == ["activations", "poses"]
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert [entry.key for entry in model.metadata_props] == [CARD]


def test_wrong_targets_are_refused(tmp_path):
    run = tiny_run()
    with pytest.raises(UserError, match="format must be one of onnx, torch-export, got 'tflite'"):
        export_run(run, tmp_path / "model.tflite", "tflite")
    with pytest.raises(UserError, match=r"format onnx ends in \.onnx"):
        export_run(run, tmp_path / "model.pt2", "onnx")


def test_missing_packages_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr("torchcaps.train.export.write.find_spec", lambda name: None)
    with pytest.raises(
        UserError, match=r'needs onnx, onnxscript, onnxruntime: pip install "torchcaps\[export\]"'
    ):
        export_run(tiny_run(), tmp_path / "model.onnx", "onnx")
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    (tmp_path / "model.onnx").touch()
    with pytest.raises(UserError, match=r'needs onnxruntime: pip install "torchcaps\[export\]"'):
        open_exported(tmp_path / "model.onnx")


@pytest.mark.parametrize("suffix", SUFFIX.values())
def test_damaged_and_missing_files_are_explained(suffix, tmp_path):
    path = tmp_path / f"model{suffix}"
    with pytest.raises(MissingDataError, match="there is no file"):
        open_exported(path, trust=True)
    path.write_text("hello")
    with pytest.raises(UserError, match="cannot be read as"):
        open_exported(path, trust=True)
    with pytest.raises(UserError, match="an exported file runs on the CPU"):
        load_predictor(path, "cuda")


def test_a_foreign_onnx_file_is_recognised(tmp_path):
    from onnx import TensorProto, helper

    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "foreign", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    (tmp_path / "foreign.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(UserError, match="was not written by torchcaps export"):
        open_exported(tmp_path / "foreign.onnx")


@pytest.mark.parametrize(("old", "new"), [(b'"classes"', b'"classe\xff"'), (b"Einsum", b"Einsu\xe5")])
def test_an_onnx_file_whose_words_are_no_text_is_refused(tmp_path, capfd, old, new):
    path = tmp_path / "model.onnx"
    export_run(tiny_run(decoder="none"), path, "onnx")
    capfd.readouterr()
    path.write_bytes(path.read_bytes().replace(old, new))
    with pytest.raises(UserError, match="cannot be read as an ONNX file"):
        open_exported(path)
    assert capfd.readouterr() == ("", "")  # onnxruntime would print that it tries again


def onnx_model(path, ends=("images", "activations", "poses"), shape=("batch", 1, 20, 20), **changes):
    """A file with the card of a real one, and inputs and outputs of one's own."""
    from onnx import TensorProto, helper

    card = next(each.value for each in changes["metadata"] if each.key == CARD)
    value = helper.make_tensor_value_info
    taken = value(ends[0], TensorProto.FLOAT, shape)
    given = [value(name, TensorProto.FLOAT, shape) for name in ends[1:]]
    nodes = [helper.make_node("Relu", [ends[0]], [name]) for name in ends[1:]]
    graph = helper.make_graph(nodes, "changed", [taken], given)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    helper.set_model_props(model, {CARD: card})
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ends": ("pictures", "activations", "poses")}, r"does not take images of shape \[1, 20, 20\]"),
        ({"shape": ("batch", 3, 20, 20)}, r"does not take images of shape \[1, 20, 20\]"),
        ({"ends": ("images", "activations")}, "does not give activations, poses"),
        ({"ends": ("images", "poses", "activations")}, "does not give activations, poses"),
    ],
)
def test_onnx_with_other_inputs_or_outputs_is_refused(onnx_file, tmp_path, changes, message):
    import onnx

    metadata = onnx.load(onnx_file).metadata_props
    with pytest.raises(UserError, match=message):
        open_exported(onnx_model(tmp_path / "changed.onnx", metadata=metadata, **changes))


def test_onnx_takes_no_tensors_from_other_files(onnx_file, tmp_path, monkeypatch):
    import onnx

    monkeypatch.chdir(tmp_path)
    model = onnx.load(onnx_file)
    onnx.save(model, "model.onnx", save_as_external_data=True, location="secret.bin", size_threshold=0)
    assert (tmp_path / "secret.bin").stat().st_size
    with pytest.raises(UserError, match=r"takes tensors from other files.*was not opened"):
        open_exported(Path("model.onnx"))


@pytest.fixture(scope="module")
def onnx_file(tmp_path_factory):
    """A network without a decoder, as ONNX."""
    path = tmp_path_factory.mktemp("onnx") / "model.onnx"
    export_run(tiny_run(decoder="none"), path, "onnx")
    return path


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The entries of a .pt2 file, to be changed."""
    path = tmp_path_factory.mktemp("program") / "model.pt2"
    export_run(tiny_run(decoder="none"), path, "torch-export")
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def entry(program, name):
    return next(found for found in program if found.endswith(name))


def rewritten(program, folder, changes):
    folder.mkdir(exist_ok=True)
    path = folder / "model.pt2"
    path.write_bytes(zipped(program | changes))
    return path


class Trap:
    """Pickled, it would write a file where it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_nothing_is_unpickled(program, tmp_path):
    sprung = tmp_path / "sprung"
    buffer = io.BytesIO()
    torch.save(Trap(sprung), buffer)
    name = entry(program, "sample_inputs/model.pt")
    assert program[name] == b""
    with pytest.raises(UserError, match=r"holds pickled example inputs.*was not opened"):
        open_exported(rewritten(program, tmp_path, {name: buffer.getvalue()}), trust=True)
    config = entry(program, "model_weights_config.json")
    values = json.loads(program[config])
    first = next(iter(values["config"].values()))
    first["use_pickle"] = True
    weight = entry(program, f"weights/{first['path_name']}")
    changes = {config: json.dumps(values), weight: buffer.getvalue()}
    with pytest.raises(UserError, match="holds pickled tensors"):
        open_exported(rewritten(program, tmp_path, changes), trust=True)
    assert not sprung.exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (r'"guards_code": []', r'"guards_code": ["print(1)"]', "guards written as code"),
        ("torch.ops.aten.relu_.default", "torch.hub.load", "the operator 'torch.hub.load'"),
        (
            "Symbol('s",
            "__import__('os').system('s",
            'expr_str "__import__',
        ),
        ("builtins.dict", "os.path", "in_spec"),
    ],
    ids=["guard", "operator", "size", "tree"],
)
def test_what_the_loader_would_run_is_refused(program, tmp_path, old, new, message):
    name = entry(program, "models/model.json")
    text = program[name].decode()
    assert old in text
    with pytest.raises(UserError, match="it was not opened") as caught:
        open_exported(rewritten(program, tmp_path, {name: text.replace(old, new)}), trust=True)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "name", ["{}/data/aotinductor/model/code.so", "{}/data/weights/model.pt", "other/models/model.json"]
)
def test_entries_that_export_does_not_write_are_refused(program, tmp_path, name):
    top = next(iter(program)).partition("/")[0]
    with pytest.raises(UserError, match=r"holds an entry.*was not opened"):
        open_exported(rewritten(program, tmp_path, {name.format(top): b"x"}), trust=True)


def test_a_program_is_opened_only_by_who_trusts_it(program, tmp_path):
    path = rewritten(program, tmp_path, {})
    for read in (open_exported, load_predictor):
        with pytest.raises(
            UserError, match=r"can run code.*use an \.onnx file or the run folder, or give --trust"
        ):
            read(path)
    assert open_exported(path, trust=True).run(torch.randn(2, 1, 20, 20))[0].shape == (2, 4)


def test_an_operator_that_reads_and_writes_files_is_refused(program, tmp_path):
    name = entry(program, "models/model.json")
    text = program[name].decode().replace("torch.ops.aten.relu_.default", "torch.ops.aten.from_file.default")
    with pytest.raises(
        UserError, match=r"the operator 'torch\.ops\.aten\.from_file\.default'.*was not opened"
    ):
        open_exported(rewritten(program, tmp_path, {name: text}), trust=True)
    acting = ("file", "load", "save", "set_", "copy_", "resize_", "data_ptr", "inductor", "print")
    assert not [each for each in OPERATORS if any(word in each for word in acting)]


def zipped(entries, **options):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **options) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def test_pytorch_loads_the_entries_that_were_checked(program, tmp_path):
    weight = entry(program, "weights/weight_0")
    hidden = program | {weight: bytes(len(program[weight]))}
    path = tmp_path / "model.pt2"
    path.write_bytes(zipped(hidden) + zipped(program))  # Python reads the second, PyTorch the first
    top = next(iter(program)).partition("/")[0]
    reader = torch._C.PyTorchFileReader(io.BytesIO(path.read_bytes()))
    assert reader.get_record(weight.removeprefix(f"{top}/")) == hidden[weight]
    images = torch.randn(2, 1, 20, 20)
    expected = open_exported(rewritten(program, tmp_path / "plain", {}), trust=True).run(images)
    assert torch.equal(open_exported(path, trust=True).run(images)[0], expected[0])


def test_an_archive_cannot_grow_when_it_is_read(program, tmp_path):
    path = tmp_path / "model.pt2"
    large = {entry(program, "models/model.json"): b"[" + b" " * (1 << 20) + b"]"}
    path.write_bytes(zipped(program | large, compression=zipfile.ZIP_DEFLATED))
    with pytest.raises(UserError, match=r"a compressed entry.*was not opened"):
        open_exported(path, trust=True)


def test_a_card_with_other_classes_is_noticed(program, tmp_path):
    name = entry(program, CARD)
    card = json.loads(program[name])
    changed = json.dumps({**card, "classes": [*card["classes"][:1], "one", "two"]})
    Image.new("L", (20, 20)).save(tmp_path / "image.png")
    predictor = load_predictor(rewritten(program, tmp_path, {name: changed}), trust=True)
    with pytest.raises(UserError, match=r"answers with \[4\] activations for 3 classes"):
        predict(predictor, [tmp_path / "image.png"])


@pytest.mark.parametrize("size", [5, 8])
def test_weights_that_are_cut_are_one_line(program, tmp_path, size, capfd):
    weight = entry(program, "weights/weight_0")
    with pytest.raises(UserError, match=r"is damaged, or cannot be read by this PyTorch"):
        open_exported(rewritten(program, tmp_path, {weight: program[weight][:size]}), trust=True)
    assert not capfd.readouterr().err


@pytest.mark.parametrize("damage", ["encrypted", "cut", "nested", "not text"])
def test_a_damaged_program_is_one_line(program, tmp_path, damage):
    name = entry(program, "models/model.json")
    changes = {"nested": b"[" * 100_000, "not text": b"\xff\xfe"}
    path = rewritten(program, tmp_path, {name: changes.get(damage, program[name])})
    content = bytearray(path.read_bytes())
    if damage == "encrypted":
        content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content[: len(content) // 2] if damage == "cut" else content)
    with pytest.raises(UserError, match=r"cannot be read as a \.pt2 file") as caught:
        open_exported(path, trust=True)
    assert len(str(caught.value)) < 400


def test_a_program_without_a_card_is_recognised(program, tmp_path):
    kept = {name: content for name, content in program.items() if not name.endswith(CARD)}
    with pytest.raises(UserError, match="was not written by torchcaps export"):
        open_exported(rewritten(kept, tmp_path, {}), trust=True)
    with pytest.raises(UserError, match=f"its {CARD} cannot be read"):
        open_exported(rewritten(program, tmp_path, {entry(program, CARD): "{"}), trust=True)
    for text in ("[" * 100_000, '{"epoch": ' + "9" * 5000 + "}"):
        with pytest.raises(UserError, match=f"its {CARD} cannot be read"):
            open_exported(rewritten(program, tmp_path, {entry(program, CARD): text}), trust=True)
    with pytest.raises(UserError, match=r"unknown key in .*'colour'"):
        open_exported(rewritten(program, tmp_path, {entry(program, CARD): '{"colour": 3}'}), trust=True)
