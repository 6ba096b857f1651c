import pytest
import torch


@pytest.fixture
def interpreted(monkeypatch):
    """Kernels run in Triton's interpreter on the CPU, on memory that is full of numbers that are none."""
    from torchcaps.kernels import availability

    from kernels.interpreter import repair_interpreter
    from kernels.poison import poison_fresh_memory

    repair_interpreter(monkeypatch)
    poison_fresh_memory(monkeypatch)
    monkeypatch.setattr(availability, "KERNEL_DEVICE", "cpu")


@pytest.fixture
def exact_products():
    """Products of float32 are not rounded to fewer digits."""
    previous = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    yield
    torch.set_float32_matmul_precision(previous)
