"""Compiling Triton kernels, as the package launches them, for a GPU that is not here.

The interpreter takes what the compiler refuses: constants of a wrong type, shapes that do not fit, and more
registers or shared memory than there are.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

import torchcaps.kernels
from torchcaps.kernels import availability

_PACKAGE = Path(torchcaps.kernels.__file__).parent
_TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"


class _AbsentGPU:
    """What Triton asks of its driver before a launch.

    Compiled kernels are kept by the number of their device, so this one has a number that no GPU has.
    """

    def __init__(self, capability: int) -> None:
        self._capability = capability

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self._capability, 32)

    def get_current_device(self) -> int:
        return 1000 + self._capability

    def get_current_stream(self, device: int) -> int:
        return 0


@dataclass(frozen=True)
class Compiled:
    """A kernel for one choice of its constants, and what a thread or a program of it takes."""

    kernel: str
    constants: dict[str, Any]
    registers: int
    spilled: int  # bytes of a thread that found no register
    shared: int  # bytes of a program

    def __str__(self) -> str:
        return f"{self.kernel} {self.constants}: {self.spilled} bytes spilled, {self.shared} shared"


@contextmanager
def compiling(capability: int, shared: int, processors: int = 132) -> Iterator[list[Compiled]]:
    """Kernels that are launched with tensors of the CPU are compiled, not run; the list grows with them.

    A program of the GPU may share `shared` bytes.
    """
    found: dict[int, Compiled] = {}
    results: list[Compiled] = []
    run, driver_before = JITFunction.run, dict(vars(driver))

    # `warmup` is Triton's own way to compile without a launch. A driver that launches nothing would have to
    # stand in for more of it, from the launcher, which is C code, to what loads a binary.
    def compile_alone(kernel: JITFunction, *args: Any, warmup: bool, **options: Any) -> None:
        del warmup
        binary = run(kernel, *args, warmup=True, **options)
        if id(binary) not in found:
            found[id(binary)] = _measure(kernel, binary, options)
            results.append(found[id(binary)])

    with tempfile.TemporaryDirectory() as cache, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", cache)  # a kernel that was compiled before might not compile now
        patch.setattr(availability, "KERNEL_DEVICE", "cpu")
        for name in [name for name in sys.modules if name.startswith("torchcaps.kernels.")]:
            for size, value in (("processors", processors), ("shared_memory", shared)):
                if hasattr(sys.modules[name], size):
                    patch.setattr(sys.modules[name], size, lambda device, value=value: value)
        patch.setattr(JITFunction, "run", compile_alone)
        driver.set_active(_AbsentGPU(capability))
        try:
            yield results
        finally:
            vars(driver).update(driver_before)


def _measure(kernel: JITFunction, binary: Any, options: dict[str, Any]) -> Compiled:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary.asm["cubin"])
        file.flush()
        command = [_TOOLS / "cuobjdump", "-res-usage", file.name]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    registers, stack = re.search(r"REG:(\d+) STACK:(\d+)", said).groups()
    constants = {key: value for key, value in options.items() if key not in ("grid", "enable_fp_fusion")}
    return Compiled(_name(kernel), constants, int(registers), int(stack), binary.metadata.shared)


def launched_kernels() -> set[str]:
    """The names of all Triton functions of the package that no other one calls."""
    functions: dict[int, JITFunction] = {}
    for path in sorted(_PACKAGE.rglob("*.py")):
        if "@triton.jit" in path.read_text():
            parts = path.relative_to(_PACKAGE).with_suffix("").parts
            module = import_module(".".join([torchcaps.kernels.__name__, *parts]))
            functions |= {id(each): each for each in vars(module).values() if isinstance(each, JITFunction)}
    called = {
        id(each.fn.__globals__.get(name)) for each in functions.values() for name in each.fn.__code__.co_names
    }
    return {_name(functions[key]) for key in functions.keys() - called}


def _name(kernel: JITFunction) -> str:
    return f"{kernel.fn.__module__.removeprefix('torchcaps.kernels.')}.{kernel.fn.__name__}"
