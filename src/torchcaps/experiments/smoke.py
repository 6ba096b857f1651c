"""A few epochs of every family on MNIST.

This is not an experiment of the thesis. It shows that each architecture trains; the thesis's figures, of
networks without decoder that train until 200 epochs bring no lower loss, stand in its tables.
"""

from __future__ import annotations

from .plan import Experiment, Setting, register

# drawn digits: the 10,000 of MNIST's test take a CPU minutes a network
_SMOKE = {
    "data.name": "synthetic_mnist",
    "data.limit": 64,
    "data.validation": 0.25,
    "batch_size": 16,
    "epochs": 1,
}
_SHORT = {"epochs": 3, "optim.decay": 0.5}
_DIGITS = {
    "data": {"name": "mnist", "augment": {"shift": 2}},
    "model.in_channels": 1,
    "model.image_size": 28,
}

register(
    Experiment(
        label="smoke-mnist",
        chapter="all families",
        title="A few epochs of every family on MNIST",
        data=("mnist",),
        gpu_minutes=5,
        seeds=3,
        budgets={"smoke": _SMOKE},
        settings=(
            Setting(
                name="DR-CapsNet, decoder",
                recipe="mnist/dr_capsnet",
                changes={"epochs": 25, "optim.decay_steps": 500},
            ),
            Setting(
                name="Efficient-CapsNet, decoder",
                recipe="mnist/efficient_capsnet_fast",
            ),
            Setting(
                name="gamma-CapsNet",
                recipe="mnist/gamma_capsnet",
                changes={**_SHORT, "model": {"name": "gamma_capsnet_mnist"}},
            ),
            Setting(
                name="DeepCaps, decoder",
                recipe="mnist/deepcaps",
                changes=_SHORT,
            ),
            Setting(
                name="convolutional baseline",
                recipe="mnist/conv_baseline",
                changes={"epochs": 5, "optim.decay": 0.5},
            ),
            Setting(
                name="parse CapsNet, five capsule layers",
                recipe="cifar10/parse_capsnet",
                changes={**_DIGITS, "epochs": 3, "patience": 0},
            ),
            Setting(
                name="Eff-ConvCapsNet at 64 px",
                recipe="mnist/effconv_capsnet",
                changes={"epochs": 2, "optim.decay": 0.5, "data.limit": 20_000},
            ),
            Setting(
                name="EM-CapsNet small",
                recipe="mnist/em_capsnet",
                changes={"epochs": 10, "optim.decay": 0.8},
            ),
        ),
    )
)
