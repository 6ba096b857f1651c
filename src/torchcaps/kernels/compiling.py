"""How functions are compiled for the processor, at their first use; other processes read what was compiled.

Numba keeps what it compiled of a file until that file changes, not those that it imports: whoever changes one
of a few operations that passes elsewhere call removes `__pycache__` beside the passes.
"""

from numba import njit

compiled = njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")
# several numbers at a time, which changes the order in which they are added
compiled_sums = njit(nogil=True, cache=True, fastmath={"contract", "reassoc"}, error_model="numpy")
