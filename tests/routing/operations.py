"""Counting the operations that a routing runs, by the rules of `torchcaps.routing.cost`."""

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

_ONCE = {
    *("abs", "add", "clamp", "clamp_min", "digamma", "div", "exp", "expm1", "log", "lt", "mul", "neg"),
    *("pow", "relu", "rsqrt", "rsub", "sqrt", "sub", "where"),
}
_SEVERAL = {"_softmax": 5, "sigmoid": 4, "tanh": 4, "log_sigmoid_forward": 4}  # for each number
_FREE = {  # no arithmetic; a number divided by a tensor runs as a reciprocal and a product, which is counted
    *("clone", "constant_pad_nd", "detach", "diagonal", "expand", "gather", "new_full", "new_zeros"),
    *("permute", "reciprocal", "slice", "squeeze", "t", "transpose", "unsafe_split", "unsqueeze"),
    *("view", "_unsafe_view"),
}


class Operations(TorchDispatchMode):
    """Counts the operations that run, a multiply-add as two; one that it does not know is an error."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        found = operation(*args, **(kwargs or {}))
        name = operation.name().removeprefix("aten::").partition(".")[0].removesuffix("_")
        given = found[0] if isinstance(found, tuple | list) else found
        if operation.overloadpacket in flop_registry:  # products of matrices
            self.count += flop_registry[operation.overloadpacket](*args, out_val=found)
            self.count += given.numel() if name == "addmm" else 0
        elif name not in _FREE:
            self.count += _count(name, args, given)
        return found


def _count(name: str, args: tuple, found: Tensor) -> int:
    numbers, results = args[0].numel(), found.numel()
    if name in ("sum", "amax", "argmax"):
        return numbers
    if name == "mean":
        return numbers + results
    if name == "linalg_vector_norm":  # squares, their sum and its root
        return 2 * numbers + results
    if name == "native_layer_norm":
        return 7 * numbers + 4 * (numbers // args[0].shape[-1])
    if name == "add" and isinstance(args[1], Tensor) and args[1].ndim == 0 and not args[1]:
        return 0  # in the place of a bias
    return results * (1 if name in _ONCE else _SEVERAL[name])


def count_operations(routing, votes: Tensor, activations: Tensor) -> int:
    """All operations of one call."""
    with torch.no_grad(), Operations() as operations:
        routing(votes, activations)
    return operations.count
