"""Where a forward uses what it computed in a way that gradients cannot follow."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils.weak import WeakIdKeyDictionary

_SHAPE_ALONE = frozenset(
    {
        *("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like"),
        *("new_zeros", "new_ones", "new_empty", "new_full", "new_tensor"),
    }
)
_INTO_PYTHON = frozenset(
    {"item", "tolist", "numpy", "__bool__", "__int__", "__float__", "__index__", "__array__", "__contains__"}
)
_STEPS = frozenset({"round", "floor", "ceil", "trunc", "fix", "sign", "sgn", "heaviside", "floor_divide"})
"""Their gradient is zero, though their results do depend on what they were given."""


class GradientCuts(TorchFunctionMode):
    """Watches a forward for values that came from the input and go on without their gradient.

    Such are the results of comparisons, indices of the largest, detached and rounded values, and numbers taken into
    Python. ``found`` names the functions that made them, in order, each once, and only if the results were used.
    ``last`` is what the function called last returned.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, None] = {}
        self.last: Any = None
        self._makers: Any = WeakIdKeyDictionary()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the function, and note what its result has lost."""
        output = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "?")
        given = [one for one in pytree.tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
        returned = [one for one in pytree.tree_leaves(output) if isinstance(one, Tensor)]
        if returned or name in _INTO_PYTHON:
            self._note_uses(given)
        if name in _INTO_PYTHON and any(one.requires_grad for one in given):
            self.found[name.strip("_")] = None
        if name not in _SHAPE_ALONE and any(one.requires_grad for one in given):
            self._makers.update({one: name for one in returned if not one.requires_grad})
        if name.strip("_") in _STEPS and any(one.requires_grad for one in given):
            self.found[name.strip("_")] = None
        if returned and torch.is_grad_enabled():  # whoever looks at a result without gradients is not the network
            self.last = output
        return output

    def _note_uses(self, given: list[Tensor]) -> None:
        self.found.update((self._makers[one].strip("_"), None) for one in given if one in self._makers)

    @property
    def note(self) -> str:
        """A sentence that names what cannot be followed, else ``""``."""
        names = ", ".join(self.found)
        return f"it may reach further, since no gradient passes {names}" if names else ""


def is_floating(tensor: Tensor) -> bool:
    """Whether gradients exist for a tensor of this kind."""
    return tensor.dtype.is_floating_point and tensor.layout is torch.strided and not tensor.is_quantized
