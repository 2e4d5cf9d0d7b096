"""What is on a network's hooks, and what is wrong with them, without running any of them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from types import MethodType
from typing import Any

import torch
from torch import nn
from torch.nn.utils import parametrize

from hookviz.hook_lab.own_copy import own_copy, own_inputs
from hookviz.hooks import HookInfo, attach, list_hooks
from hookviz.hooks.attach import innermost
from hookviz.hooks.names import LayerNames
from hookviz.hooks.structure import leaves

_KINDS = {
    "_forward_pre_hooks": "forward_pre",
    "_forward_hooks": "forward",
    "_backward_pre_hooks": "backward_pre",
    "_backward_hooks": "backward",
}
_MOST_TRIED = 16


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know of a network's hooks; ``serious`` where something goes wrong or other than meant."""

    layer: str | None
    sentence: str
    serious: bool


@dataclass(frozen=True, slots=True)
class HookLint:
    """Every hook that sits on a network, and what there is to say of them."""

    hooks: tuple[HookInfo, ...]
    findings: tuple[Finding, ...]


def lint_hooks(module: nn.Module, arguments: tuple[Any, ...] = ()) -> HookLint:
    """Look at the hooks of a network; none of them runs, and the network is left alone.

    Args:
        module: the network.
        arguments: what it is called with. With them, copies are run to see where torch's full backward hooks raise.
    """
    infos = tuple(list_hooks(module))
    findings = [
        *_of_infos(infos),
        *_twins(module),
        *_replacing(module),
        *_raising(module, arguments, infos),
        *_part_of_model(module),
    ]
    return HookLint(infos, tuple(sorted(findings, key=lambda one: not one.serious)))


def _of_infos(infos: tuple[HookInfo, ...]) -> Iterator[Finding]:
    for info in infos:
        if info.is_global:
            yield Finding(
                None, f"{info.function} is a global {info.kind} hook: every module of the process runs it.", True
            )
        if info.deprecated:
            yield Finding(
                info.layer,
                f"{info.function} on {_named(info.layer)} was registered with the deprecated register_backward_hook, "
                "whose grad_input mixes inputs, weight and bias: use register_full_backward_hook, and for weights "
                "Tensor.register_post_accumulate_grad_hook.",
                True,
            )


def _twins(module: nn.Module) -> Iterator[Finding]:
    for layer, one in LayerNames(module).items():
        for kind, hooks in _hooks_of(one):
            for number, hook in enumerate(hooks):
                if any(hook == other for other in hooks[:number]):
                    name = _name(hook)
                    yield Finding(
                        layer, f"{name} is a {kind} hook of {_named(layer)} more than once, and runs each time.", True
                    )


def _replacing(module: nn.Module) -> Iterator[Finding]:
    for layer, one in LayerNames(module).items():
        for kind, hooks in _hooks_of(one):
            for hook in dict.fromkeys(hooks):
                if not _is_torchs(hook) and returns_a_value(innermost(hook)):
                    what = {
                        "forward": "the layer’s output",
                        "forward_pre": "the layer’s input",
                        "backward": "the gradient of the layer’s input",
                        "backward_pre": "the gradient of the layer’s output",
                    }[kind]
                    yield Finding(
                        layer,
                        f"{_name(hook)} on {_named(layer)} returns a value, which takes the place of {what}.",
                        False,
                    )


def returns_a_value(function: Any) -> bool:
    """Whether a function's source has a ``return`` of something else than None; False where there is no source."""
    called = function if inspect.isroutine(function) else type(function).__call__
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(called)))
    except (OSError, TypeError, SyntaxError):
        return False
    definition = tree.body[0]
    if not isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False  # of a lambda, the source is the whole statement around it
    return any(
        node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None)
        for node in _own_returns(definition)
    )


def _own_returns(node: ast.AST) -> Iterator[ast.Return]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return):
            yield child
        elif not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield from _own_returns(child)


def _raising(module: nn.Module, arguments: tuple[Any, ...], infos: tuple[HookInfo, ...]) -> Iterator[Finding]:
    """Where torch's full backward hooks raise, found by trying one that does nothing."""
    hooked = dict.fromkeys(
        info.layer
        for info in infos
        if info.layer is not None
        and info.kind in {"backward", "backward_pre"}
        and not info.deprecated
        and not info.emulated
    )
    for layer in [one for one in hooked if one is not None][:_MOST_TRIED] if arguments else ():
        reason = _reason_it_raises(module, arguments, layer)
        if reason:
            yield Finding(
                layer,
                f"The full backward hook on {_named(layer)} makes torch raise in a forward with gradients, since an "
                "operation behind it writes in place; hookviz.attach(…, emulate=True) sets it on tensors instead.",
                True,
            )


def _reason_it_raises(module: nn.Module, arguments: tuple[Any, ...], layer: str) -> str:
    copy = own_copy(module)
    with torch.enable_grad(), attach(copy, {layer: lambda *_: None}, "backward", emulate=False):
        try:
            output = copy(*own_inputs(arguments, gradients=True))
            torch.stack([one.sum() for _, one in leaves(output, torch.Tensor) if one.requires_grad]).sum().backward()
        except Exception as error:  # noqa: BLE001  # whatever else goes wrong is none of the hook's
            return str(error) if "BackwardHookFunction" in str(error) else ""
    return ""


def _part_of_model(module: nn.Module) -> Iterator[Finding]:
    for layer, one in LayerNames(module).items():
        for kind, hooks in _hooks_of(one):
            for hook in filter(_is_torchs, hooks):
                yield Finding(
                    layer, f"{_name(hook)} on {_named(layer)} is torch’s own {kind} hook and part of the model.", False
                )
        if parametrize.is_parametrized(one) and isinstance(one.parametrizations, nn.ModuleDict):
            for parameter, steps in one.parametrizations.items():
                names = ", ".join(type(step).__name__ for step in steps)  # type: ignore[attr-defined]  # a ParametrizationList
                yield Finding(
                    layer,
                    f"{_named(layer)} computes its {parameter} by {names}, a parametrization: part of the model.",
                    False,
                )


def _hooks_of(module: nn.Module) -> Iterator[tuple[str, list[Any]]]:
    for attribute, kind in _KINDS.items():
        yield kind, list(getattr(module, attribute).values())


def _is_torchs(hook: Any) -> bool:
    """Pruning, weight norm and spectral norm of the older kind are hooks that torch puts there."""
    function = hook.func if isinstance(hook, partial) else hook
    owner = function.__self__ if isinstance(function, MethodType) else function
    origin = getattr(owner, "__module__", None) or type(owner).__module__
    return origin == "torch" or origin.startswith("torch.")


def _name(hook: Any) -> str:
    function = innermost(hook)
    name: str = getattr(function, "__qualname__", type(function).__qualname__)
    return name


def _named(layer: str | None) -> str:
    return "every module" if layer is None else layer or "the whole network"
