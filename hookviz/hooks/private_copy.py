"""A copy of a network's module tree that shares the weights, so that running it disturbs nobody."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from hookviz.errors import HookvizError
from hookviz.hooks.names import eager
from hookviz.hooks.structure import leaves

_HOOK_DICTS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_HOOK_OPTIONS = ("_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks_with_kwargs")
_INTERNALS = frozenset(nn.Module().__dict__)


def private_copy(module: nn.Module, *, tensor: Callable[[Tensor], Tensor] | None = None) -> nn.Module:
    """Copy the module tree; parameters are shared with the original, buffers are the copy's own.

    Hooks that are part of the model (pruning, weight and spectral norm, methods of its own modules) come along; all
    others stay behind. Pruned modules can be copied, which ``copy.deepcopy`` refuses after a forward.

    Args:
        module: the network; of a compiled one, the eager original is copied.
        tensor: what to put in place of each parameter and buffer, for instance the same on the meta device; the default
            keeps parameters and clones everything else.

    Raises:
        HookvizError: a part of the model refuses to be copied.
    """
    module = eager(module)
    tree = list(module.modules())
    ids = {id(one) for one in tree}
    # What the memo holds already is what deepcopy uses instead of copying.
    memo: dict[int, Any] = {}
    for one in tree:
        memo.update(_shared_tensors(one, tensor))
    for one in tree:
        memo.update((id(value), type(value)()) for value in vars(one).values() if _is_empty(value))
        memo.update((id(getattr(one, attribute)), OrderedDict()) for attribute in _HOOK_DICTS + _HOOK_OPTIONS)
    try:
        copied: nn.Module = copy.deepcopy(module, memo)
        for one in tree:
            _bring_own_hooks(one, memo, ids)
            _share_packed_weights(one, memo)
    except Exception as error:
        raise HookvizError(
            f"this {type(module).__name__} holds something that cannot be copied ({type(error).__name__}: {error}); "
            "record() works on the model itself."
        ) from error
    return copied


def detached_copy(module: nn.Module) -> nn.Module:
    """A private copy whose parameters are its own too, so that a backward pass writes no ``.grad`` but the copy's.

    The values are shared all the same; nothing may write into them.
    """
    return private_copy(private_copy(module), tensor=lambda tensor: tensor)


def on_meta(tensor: Tensor) -> Tensor:
    """The same shape, dtype and strides on the meta device, where nothing is computed."""
    return torch.empty_like(tensor, device="meta")


def _is_empty(value: Any) -> bool:
    """Whether this is one of a module's many empty containers, which are made quicker than copied."""
    return type(value) in {OrderedDict, dict, set} and not value


def _shared_tensors(module: nn.Module, replace: Callable[[Tensor], Tensor] | None) -> Iterator[tuple[int, Tensor]]:
    for other in _plain_tensors(module):
        yield id(other), (replace or Tensor.clone)(other.detach())
    for buffer in module._buffers.values():
        if buffer is not None and not is_lazy(buffer):
            yield id(buffer), (replace or Tensor.clone)(buffer.detach())
    for parameter in module._parameters.values():
        if parameter is not None and not is_lazy(parameter):  # a lazy one gets its shape in the forward, in place
            yield id(parameter), parameter if replace is None else _replaced(parameter, replace)


def _replaced(parameter: nn.Parameter, replace: Callable[[Tensor], Tensor]) -> nn.Parameter:
    return nn.Parameter(replace(parameter.detach()), requires_grad=parameter.requires_grad)


def _plain_tensors(module: nn.Module) -> Iterator[Tensor]:
    """Tensors kept as ordinary attributes; pruning leaves its masked weight there, which deepcopy refuses."""
    for name, value in module.__dict__.items():
        if name not in _INTERNALS and isinstance(value, (Tensor, list, tuple, dict)):
            yield from (tensor for _, tensor in leaves(value, Tensor) if not isinstance(tensor, nn.Parameter))


def _bring_own_hooks(module: nn.Module, memo: dict[int, Any], tree: set[int]) -> None:
    """Copy the hooks that are part of the model, methods of its modules becoming methods of the copies."""
    brought: set[int] = set()
    for attribute in _HOOK_DICTS:
        hooks: dict[int, Any] = getattr(module, attribute)
        own = {number: hook for number, hook in hooks.items() if is_part_of_model(hook, tree)}
        memo[id(hooks)].update((number, copy.deepcopy(hook, memo)) for number, hook in own.items())
        brought |= own.keys()
    for attribute in _HOOK_OPTIONS:
        options: dict[int, bool] = getattr(module, attribute)
        memo[id(options)].update((number, on) for number, on in options.items() if number in brought)


def _share_packed_weights(module: nn.Module, memo: dict[int, Any]) -> None:
    """Give the copy the very weights of an int8 layer.

    Copying packs them anew, for the kernels of ``torch.backends.quantized.engine`` as it is now, which may round
    otherwise than those the network was made for.
    """
    for name, value in module.__dict__.items():
        if isinstance(value, torch.ScriptObject):
            memo[id(module)].__dict__[name] = value


def is_part_of_model(hook: Any, tree: set[int]) -> bool:
    """Whether a hook is torch's own (pruning, weight norm) or a method of a module whose id is in ``tree``."""
    while isinstance(hook, partial):
        hook = hook.func
    owner = hook.__self__ if isinstance(hook, MethodType) else hook
    if isinstance(owner, nn.Module):
        return id(owner) in tree
    origin = getattr(owner, "__module__", None) or type(owner).__module__
    return origin == "torch" or origin.startswith("torch.")
