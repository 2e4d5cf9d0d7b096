"""Edits as functions that torch's own hooks call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hookviz.errors import HookvizError
from hookviz.hooks.edits import AddNoise, Clamp, Edit, KeepOnly, ReplaceByMean, Scale, Zero


def edit_functions(edits: Mapping[str, Sequence[Edit]]) -> str:
    """Statements that define a hook for every edit, register it, and leave the ``handles``.

    Raises:
        HookvizError: an edit inside a tuple or dict.
    """
    every = [(layer, one) for layer, many in edits.items() for one in many]
    parts = ["handles = []", *(_one(number, layer, one) for number, (layer, one) in enumerate(every))]
    return "\n\n".join(parts)


def _one(number: int, layer: str, one: Edit) -> str:
    if one.path:
        raise HookvizError(
            f"The edit of {layer!r} is inside a tuple or dict, for which there is no short hook; "
            "use the script with hookviz."
        )
    body = "\n".join(f"    {line}" for line in [*_counted(number, one), *_body(one), "return changed"])
    where = f'model.get_submodule("{layer}")' if layer else "model"
    counter = f"calls_{number} = []\n\n\n" if one.call is not None else "\n"
    return (
        f"{counter}def change_{number}(module, args, output):\n{body}\n\n\n"
        f"handles.append({where}.register_forward_hook(change_{number}))"
    )


def _counted(number: int, one: Edit) -> list[str]:
    if one.call is None:
        return []
    return [f"calls_{number}.append(module)", f"if len(calls_{number}) != {one.call + 1}:", "    return None"]


def _body(one: Edit) -> list[str]:
    """Statements that leave the changed output."""
    channels: Any = getattr(one, "channels", None)
    start = ["changed = output.clone()"]
    index = _index(one, channels)
    if isinstance(one, Zero):
        return [*start, f"changed{index} = 0"]
    if isinstance(one, KeepOnly):
        return ["changed = torch.zeros_like(output)", f"changed{index} = output{index}"]
    changed = _changed(one)
    return [*changed[:-1], *start, f"changed{index} = ({changed[-1]}){index}"]


def _index(one: Edit, channels: Any) -> str:
    if channels is None:
        return "[...]"
    numbers = str(list(channels))
    return f"[..., {numbers}]" if one.axis == -1 else f"[{', '.join([*[':'] * one.axis, numbers])}]"


def _changed(one: Edit) -> list[str]:
    """Statements, and last an expression for all channels changed."""
    match one:
        case Scale():
            return [f"output * {one.factor!r}"]
        case Clamp():
            return [f"output.clamp({one.low!r}, {one.high!r})"]
        case AddNoise():
            return [
                f"generator = torch.Generator(output.device).manual_seed({one.seed})",
                "noise = torch.randn(output.shape, generator=generator, dtype=output.dtype, device=output.device)",
                f"output + {one.std!r} * noise",
            ]
        case ReplaceByMean():
            return [
                f"positions = [axis for axis in range(1, output.ndim) if axis != {one.axis} % output.ndim]",
                "output.mean(positions, keepdim=True).expand_as(output)",
            ]
    raise HookvizError(f"there is no short hook for {type(one).__name__}; use the script with hookviz.")
