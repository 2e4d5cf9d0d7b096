"""The kinds of hook that torch has, by the names that hookviz gives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from hookviz.errors import HookvizError

HookKind: TypeAlias = Literal["forward", "forward_pre", "backward", "backward_pre", "tensor"]
Hook: TypeAlias = Callable[..., Any]

REGISTER: dict[str, str] = {
    "forward": "register_forward_hook",
    "forward_pre": "register_forward_pre_hook",
    "backward": "register_full_backward_hook",
    "backward_pre": "register_full_backward_pre_hook",
}

REGISTER_GLOBAL: dict[str, str] = {
    "forward": "register_module_forward_hook",
    "forward_pre": "register_module_forward_pre_hook",
    "backward": "register_module_full_backward_hook",
    "backward_pre": "register_module_full_backward_pre_hook",
}

OPTIONS: dict[str, tuple[str, ...]] = {
    "forward": ("prepend", "with_kwargs", "always_call"),
    "forward_pre": ("prepend", "with_kwargs"),
    "backward": ("prepend",),
    "backward_pre": ("prepend",),
    "tensor": (),
}
GLOBAL_OPTIONS: dict[str, tuple[str, ...]] = {
    "forward": ("with_kwargs", "always_call"),
    "forward_pre": (),
    "backward": (),
    "backward_pre": (),
}


def check_kind(kind: str, options: Mapping[str, bool], known: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse a kind of hook, or an option, that torch does not know.

    Raises:
        HookvizError: it does not.
    """
    if kind not in known:
        raise HookvizError(f"no hook kind {kind!r}; choose one of {', '.join(known)}.")
    for option in options:
        if option not in known[kind]:
            takes = " and ".join(known[kind]) or "no options"
            raise HookvizError(f"torch has no option {option!r} for {kind} hooks of this sort; they take {takes}.")
