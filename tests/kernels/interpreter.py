"""Running Triton kernels in Triton's interpreter, on the CPU.

It must be chosen before Triton is imported, so such tests live in files of their own and run in a process of
their own.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def run_interpreted(marks: str) -> subprocess.CompletedProcess[str]:
    """The tests of all files `interpreted_*.py` that have these marks."""
    files = map(str, sorted(HERE.parent.rglob("interpreted_*.py")))
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-m", marks, *files]
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    environment |= {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run(command, env=environment, cwd=HERE.parents[1], capture_output=True, text=True)


def repair_interpreter(monkeypatch) -> None:
    """Let loops run: the interpreter's own `__index__` relies on a conversion that numpy 2.4 has removed."""
    import triton.runtime.interpreter as interpreter

    patch = interpreter._patch_lang_tensor

    def patch_tensor(tensor, scope):
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    monkeypatch.setattr(interpreter, "_patch_lang_tensor", patch_tensor)
