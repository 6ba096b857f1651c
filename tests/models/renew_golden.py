"""Stored outputs of the tiny models. Renew them, after a change that is meant to change or to add some, with

python tests/models/renew_golden.py
"""

import json
from pathlib import Path

import torch

from torchcaps.models import create_model, list_models

GOLDEN = Path(__file__).with_name("golden.json")
MOST_VALUES = 48  # of each output, evenly spaced
TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}  # for the rounding of other machines


def fill(model, generator):
    """Weights that no initialisation and no version of PyTorch can change."""
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            values = torch.randn(parameter.shape, generator=generator)
            if name.endswith("weight"):
                is_gain, is_vote = parameter.ndim == 1, parameter.ndim == 4 and "conv" not in name
                scale = 0.7 if is_vote else 2 * parameter[0].numel() ** -0.5
                parameter.copy_(1 + 0.1 * values if is_gain else scale * values)
            else:
                parameter.copy_(0.1 * values)
    return model.eval()


def sample(tensor):
    values = tensor.detach().flatten()
    step = -(-values.numel() // MOST_VALUES)
    return [float(f"{value:.7g}") for value in values[::step].tolist()]


def golden_output(name):
    """A few numbers of each tensor that the model returns for two fixed images."""
    generator = torch.Generator().manual_seed(42)
    model = fill(create_model(name), generator)
    images = torch.randn(2, *model.image_shape, generator=generator)
    with torch.no_grad():
        output = model(images)
    return {field: sample(value) for field, value in output._asdict().items() if torch.is_tensor(value)}


def differ_in_rounding_alone(first, second):
    sizes = [{field: len(values) for field, values in each.items()} for each in (first, second)]
    return sizes[0] == sizes[1] and all(
        torch.allclose(torch.tensor(first[field]), torch.tensor(second[field]), **TOLERANCE)
        for field in first
    )


def main():
    before = json.loads(GOLDEN.read_text())
    stored = {name: golden_output(name) for name in list_models("*_tiny_test")}
    for name in stored.keys() & before.keys():
        if differ_in_rounding_alone(before[name], stored[name]):
            stored[name] = before[name]
    lines = (f"{json.dumps(name)}: {json.dumps(values)}" for name, values in stored.items())
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
