"""What a hook was given, and what went on through the network afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from hookviz.hook_lab.experiment import SIGNATURES, LabKind
from hookviz.hook_lab.lab_hook import first_tensor
from hookviz.hook_lab.memory import Owners
from hookviz.hooks.snapshot import snapshot
from hookviz.hooks.structure import leaves, tensor_infos


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """One call of a hook.

    ``given`` describes each argument behind the module by its name in the signature, ``returned`` what the hook gave
    back. ``before`` is the tensor it may replace as it came, ``after`` the one that went on; of the first call only.
    """

    module: str
    given: tuple[tuple[str, str], ...]
    returned: str
    before: Tensor | None
    after: Tensor | None


class Witness:
    """Stands between torch and a hook, and lets everything through."""

    def __init__(self, hook: Callable[..., Any], kind: LabKind, owners: Owners | None = None) -> None:
        self._hook = hook
        self._kind = kind
        self._owners = owners
        self.seen: list[Seen] = []
        self.failed = False

    def __call__(self, module: nn.Module, *given: Any) -> Any:
        """Call the hook."""
        value = given[-1] if self._kind == "forward" else given[0]
        words, before = self._described(given), self._kept(value)
        if self._owners is not None:
            self._owners.name_those_of(first_tensor(value))
        try:
            answer = self._hook(module, *given)
        except BaseException:
            self.failed = True
            raise
        after = self._kept(value if answer is None else answer)
        returned = "nothing (None)" if answer is None else describe(answer)
        self.seen.append(Seen(repr(module), words, returned, before, after))
        return answer

    def _described(self, given: tuple[Any, ...]) -> tuple[tuple[str, str], ...]:
        names = SIGNATURES[self._kind].partition("(")[2].rstrip(")").split(", ")[1:]
        return tuple((name, describe(value)) for name, value in zip(names, given, strict=True))

    def _kept(self, value: Any) -> Tensor | None:
        tensor = None if self.seen else first_tensor(value)
        return None if tensor is None else snapshot(tensor)


def describe(value: Any) -> str:
    """A value in a few words: its type, and shape and dtype of the tensors in it."""
    if isinstance(value, Tensor):
        return _tensor(value)
    if isinstance(value, (tuple, list)):
        items = ", ".join(_tensor(one) if isinstance(one, Tensor) else _plain(one) for one in value)
        return f"{type(value).__name__} of {len(value)}: {items}" if value else f"empty {type(value).__name__}"
    return _plain(value)


def _tensor(tensor: Tensor) -> str:
    (info,) = tensor_infos(tensor)
    return f"{' × '.join(map(str, info.shape)) or 'scalar'} {info.dtype}"


def _plain(value: Any) -> str:
    if value is None:
        return "None"
    tensors = [_tensor(tensor) for _, tensor in leaves(value, Tensor)]
    return f"{type(value).__name__} with {', '.join(tensors)}" if tensors else type(value).__name__
