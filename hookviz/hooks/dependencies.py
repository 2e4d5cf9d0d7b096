"""A backward pass that carries masks of dependence in place of gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from hookviz.hooks.dependency_rules import Operation, binary, everything, rule_of, union

_MADE_ALIKE = frozenset(
    {"new_zeros", "new_empty", "new_empty_strided", "new_full", "new_ones", "empty_like", "zeros_like", "ones_like"}
)
"""Operations that take no more than a shape from their argument."""

_ASKING = frozenset(
    {
        *("isnan", "isinf", "isfinite", "eq", "ne", "gt", "ge", "lt", "le", "equal", "any", "all"),
        *("_is_any_true", "_is_all_true", "_local_scalar_dense"),
    }
)
"""Operations that answer with true or false or a number in Python; torch's anomaly mode puts them in everywhere."""

_OVERWRITING = frozenset({"zero_", "fill_", "copy_"})


class DependencyMode(TorchDispatchMode):
    """While it is on, a backward pass finds out what a value can depend on, rather than how strongly it does.

    ``guessed`` names the operations that nothing is known of, behind which everything is taken to depend on everything.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self.guessed: set[str] = set()
        self._storages: dict[int, StorageWeakRef] = {}

    def follow(self, mask: Tensor) -> Tensor:
        """Take a tensor and its views as masks from now on."""
        storage = mask.untyped_storage()
        # A weak reference keeps the address from being given to another storage, and lets go of the memory.
        self._storages.setdefault(storage._cdata, StorageWeakRef(storage))
        return mask

    def is_mask(self, tensor: Tensor) -> bool:
        """Whether a tensor is one of those."""
        return tensor.layout is torch.strided and tensor.untyped_storage()._cdata in self._storages

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Apply an operation's rule where a mask takes part, and the operation itself elsewhere."""
        operation = Operation(func, args, kwargs or {}, self.is_mask)
        if func.overloadpacket.__name__ in _MADE_ALIKE | _ASKING or not operation.masks:
            return func(*args, **operation.kwargs)
        if func._schema.is_mutable:
            return self._write(operation)
        output = func(*args, **operation.kwargs) if _is_view(func) else self._rule(func)(operation)
        return pytree.tree_map_only(Tensor, self.follow, output)

    def _rule(self, function: Any) -> Any:
        rule = rule_of(function)
        if rule is None:
            self.guessed.add(function.overloadpacket.__name__.strip("_"))
        return rule or everything

    def _write(self, operation: Operation) -> Any:
        """An operation that writes into its first argument."""
        function, args, kwargs, _ = operation
        target = args[0]
        if function.overloadpacket.__name__ in _OVERWRITING:
            function(*args, **kwargs)
            target.copy_(binary(target))
        else:
            rule = self._rule(function)
            # Other rules run the operation itself, and its target must not be overwritten before it has been read.
            given = operation if rule is union else operation._replace(args=(self._copy(target), *args[1:]))
            target.copy_(rule(given))
        return self.follow(target)

    def _copy(self, target: Tensor) -> Tensor:
        return self.follow(target.clone()) if self.is_mask(target) else target.clone()


def _is_view(function: Any) -> bool:
    aliases = [returned.alias_info for returned in function._schema.returns]
    return any(alias is not None and not alias.is_write for alias in aliases)
