"""The hooks of experiments, with torch's own signatures."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from hookviz.hook_lab.experiment import Experiment, HookLabError
from hookviz.hooks import AddNoise, Clamp, Edit, ReplaceByMean, Scale, Zero

_EDITS: dict[str, Callable[[float, tuple[int, ...] | None, int], Edit]] = {
    "scale": lambda strength, channels, axis: Scale(strength, channels, axis=axis),
    "noise": lambda strength, channels, axis: AddNoise(strength, channels, axis=axis),
    "clamp": lambda strength, channels, axis: Clamp(-strength, strength, channels, axis=axis),
    "zero": lambda _, channels, axis: Zero(channels, axis=axis),
    "mean": lambda _, channels, axis: ReplaceByMean(channels, axis=axis),
}


def make_hook(experiment: Experiment) -> Callable[..., Any]:
    """The hook of an experiment whose channels are numbers or None.

    Raises:
        HookLabError: the function it names cannot be had.
    """
    if experiment.action == "function":
        return named_function(experiment.function)

    def hook(_: Any, *given: Any) -> Any:
        return _act(experiment, given[-1] if experiment.kind == "forward" else given[0])

    return hook


def _act(experiment: Experiment, value: Any) -> Any:
    if experiment.action == "look":
        return None
    tensor = first_tensor(value)
    if tensor is None:
        raise HookLabError(
            f"{experiment.layer or 'the network'} was given no tensor to change in {experiment.replaces}; "
            "only look at it, or choose another layer."
        )
    match experiment.action:
        case "not_returned":
            tensor = tensor * 0
            return None
        case "in_place":
            _write(experiment, tensor)
            return None
    axis = experiment.axis(tensor.ndim)
    edit = _EDITS[experiment.action](experiment.strength, _numbers(experiment), axis)
    return with_first(value, edit.apply(tensor))


def _write(experiment: Experiment, tensor: Tensor) -> None:
    channels = _numbers(experiment)
    axis = experiment.axis(tensor.ndim)
    with torch.no_grad():
        for part in [tensor] if channels is None else [tensor.select(axis, channel) for channel in channels]:
            part.zero_()


def _numbers(experiment: Experiment) -> tuple[int, ...] | None:
    return cast("tuple[int, ...] | None", experiment.channels)


def first_tensor(value: Any) -> Tensor | None:
    """What an experiment changes: the value itself, or the first item of a tuple or list."""
    if isinstance(value, (tuple, list)) and value:
        value = value[0]
    return value if isinstance(value, Tensor) else None


def with_first(value: Any, tensor: Tensor) -> Any:
    """The same value with ``tensor`` in the place of the first."""
    if isinstance(value, Tensor):
        return tensor
    rest = cast("Sequence[Any]", value)[1:]
    return (tensor, *rest) if isinstance(value, tuple) else [tensor, *rest]


def named_function(target: str) -> Callable[..., Any]:
    """The function that ``package.module:function`` names.

    Raises:
        HookLabError: it cannot be imported, is not there, or cannot be called.
    """
    location, colon, name = target.partition(":")
    if not (location and colon and name):
        raise HookLabError(f"{target!r} names no function; write package.module:function.")
    if str(Path.cwd()) not in sys.path:  # a console script, unlike python -m, does not look into the current folder
        sys.path.append(str(Path.cwd()))
    try:
        function: Any = attrgetter(name)(importlib.import_module(location))
    except AttributeError as error:
        raise HookLabError(f"{location} has no {name}; name a function of it with the hook's signature.") from error
    except Exception as error:  # it is somebody else's code
        raise HookLabError(
            f"{location} cannot be imported ({type(error).__name__}: {error}); start hookviz in the folder that holds "
            "it, or install it."
        ) from error
    if not callable(function):
        raise HookLabError(f"{target} is a {type(function).__name__}; name a function with the hook's signature.")
    return cast("Callable[..., Any]", function)
