"""What every network must do that gives activations, whatever its task."""

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close


def images(model, batch=2):
    return torch.rand(batch, *model.image_shape)


def replica(model):
    """What `nn.DataParallel` makes of a model for another device, whose weights are no parameters."""
    copies = {module: module._replicate_for_data_parallel() for module in model.modules()}
    for module, copy in copies.items():
        copy._former_parameters = {}
        for name, child in module.named_children():
            setattr(copy, name, copies[child])
        for name, parameter in module._parameters.items():
            setattr(copy, name, None if parameter is None else parameter.view_as(parameter))
            copy._former_parameters |= {} if parameter is None else {name: getattr(copy, name)}
    return copies[model]


class NetworkContract:
    """Subclassed beside a fixture `model`."""

    def test_every_parameter_learns(self, model):
        output = model(images(model))
        total = output.activations.square().sum() + (  # squared, for probabilities have a constant sum
            output.reconstruction.sum() if output.reconstruction is not None else 0
        )
        total.backward()
        assert not [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]

    def test_an_image_does_not_see_its_neighbours(self, model):
        batch = images(model.eval(), batch=3)
        assert_close(model(batch).activations[:1], model(batch[:1]).activations)

    def test_weights_round_trip(self, model, tmp_path):
        save_file(model.state_dict(), tmp_path / "weights.safetensors")
        twin = type(model)(model.config)
        twin.load_state_dict(load_file(tmp_path / "weights.safetensors"))
        batch = images(model.eval())
        for ours, theirs in zip(twin.eval()(batch), model(batch), strict=True):
            assert not isinstance(ours, torch.Tensor) or torch.equal(ours, theirs)

    def test_a_replica_for_another_device_answers_alike(self, model):
        batch = images(model.eval())
        copy = replica(model)
        assert not list(copy.parameters())
        assert_close(copy(batch).activations, model(batch).activations)

    def test_bfloat16_autocast_changes_little(self, model):
        batch = images(model.eval())
        plain = model(batch).activations
        with torch.autocast("cpu", torch.bfloat16):
            half = model(batch).activations
        assert half.dtype == torch.float32
        assert_close(half, plain, atol=0.05, rtol=0.05)

    @pytest.mark.compile
    def test_compiles_without_graph_breaks(self, model):
        batch = images(model.eval())
        compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
        assert_close(compiled(batch).activations, model(batch).activations)
