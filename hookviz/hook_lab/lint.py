"""All there is to say of the hooks on a network: what surprises, what replaces values, what is part of the model."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.nn.utils import parametrize

from hookviz.hooks import HookInfo, list_hooks
from hookviz.hooks.attach import innermost
from hookviz.hooks.lint import HookFinding, lint_hooks
from hookviz.hooks.names import LayerNames
from hookviz.hooks.placed_hooks import PlacedHook, placed_hooks, written_at
from hookviz.hooks.private_copy import is_part_of_model

_REPLACED = {
    "forward": "the layer’s output",
    "forward_pre": "the layer’s arguments",
    "backward": "the gradient of the layer’s input",
    "backward_pre": "the gradient of the layer’s output",
}


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing to know of a network's hooks; ``serious`` where something goes wrong or other than meant."""

    layer: str | None
    sentence: str
    serious: bool


@dataclass(frozen=True, slots=True)
class HookSurvey:
    """Every hook that sits on a network, and what there is to say of them, the serious first."""

    hooks: tuple[HookInfo, ...]
    remarks: tuple[Remark, ...]


def survey_hooks(module: nn.Module, arguments: tuple[Any, ...] = ()) -> HookSurvey:
    """Look at the hooks of a network; none of them runs, and the network is left alone.

    Args:
        module: the network.
        arguments: what it is called with; with them a copy is run to see where torch's full backward hooks raise.
    """
    names = LayerNames(module)
    tree = {id(one) for one in names.root.modules()}
    placed = list(placed_hooks(names))
    own = [one for one in placed if is_part_of_model(one.installed, tree)]
    others = [one for one in placed if one not in own]
    remarks = [
        *_surprising(lint_hooks(module, *arguments)),
        *_replacing(others),
        *map(_part_of_model, own),
        *_parametrized(names),
    ]
    return HookSurvey(tuple(list_hooks(module)), tuple(remarks))


def _surprising(findings: tuple[HookFinding, ...]) -> Iterator[Remark]:
    for one in findings:
        if one.kind != "left":  # the table says who registered a hook
            yield Remark(one.layer, f"The {one.hook} hook {one.function} on {_named(one.layer)}: {one.message}", True)


def _replacing(hooks: list[PlacedHook]) -> Iterator[Remark]:
    seen = set()
    for one in hooks:
        function = innermost(one.installed)
        name, _, _ = written_at(function)
        if returns_a_value(function) and (one.layer, one.kind, name) not in seen:
            seen.add((one.layer, one.kind, name))
            yield Remark(
                one.layer,
                f"The {one.kind} hook {name} on {_named(one.layer)} returns a value, which takes the place of "
                f"{_REPLACED[one.kind]}.",
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


def _part_of_model(hook: PlacedHook) -> Remark:
    name, _, _ = written_at(innermost(hook.installed))
    return Remark(hook.layer, f"{name} on {_named(hook.layer)} is part of the model, and no hook to remove.", False)


def _parametrized(names: LayerNames) -> Iterator[Remark]:
    for layer, module in names.items():
        steps = getattr(module, "parametrizations", None)
        if not parametrize.is_parametrized(module) or not isinstance(steps, nn.ModuleDict):
            continue
        for parameter, chain in steps.items():
            kinds = ", ".join(type(step).__name__.removeprefix("_") for step in chain.children())
            sentence = f"{_named(layer)} computes its {parameter} by {kinds}, a parametrization: part of the model."
            yield Remark(layer, sentence, False)


def _named(layer: str | None) -> str:
    return "every module" if layer is None else layer or "the whole network"
