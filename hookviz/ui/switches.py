"""What is done to single channels of layers: a list of values that becomes edits, words, and part of an address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, TypeAlias

from hookviz.hooks.edits import AddNoise, Clamp, Edit, KeepOnly, ReplaceByMean, Scale, Zero
from hookviz.types import LayerInfo, Layout
from hookviz.views import number

Action: TypeAlias = Literal["zero", "mean", "scale", "noise", "clamp", "keep"]
Numbers: TypeAlias = tuple[float | None, ...]

COUNT: dict[Action, int] = {"zero": 0, "mean": 0, "scale": 1, "noise": 1, "clamp": 2, "keep": 0}
"""Every action, and how many numbers it takes."""


@dataclass(frozen=True, slots=True)
class EditPlace:
    """The tensor whose channels are meant: a layer's, in one call or all, at a path of the output, along an axis."""

    layer: str
    call: int | None = None
    path: str = ""
    axis: int = 1


@dataclass(frozen=True, slots=True)
class Switch:
    """One channel, and what is done to it: the factor of a scale, the sd of noise, the low and high of a clamp."""

    place: EditPlace
    channel: int
    action: Action
    numbers: Numbers = ()


def put(switches: Iterable[Switch], new: Switch) -> tuple[Switch, ...]:
    """The switches with a new one, in the place of the one that its channel had."""
    kept = list(switches)
    before = switch_of(kept, new.place, new.channel)
    if before is None:
        return (*kept, new)
    return tuple(new if one == before else one for one in kept)


def switch_of(switches: Iterable[Switch], place: EditPlace, channel: int) -> Switch | None:
    """What is done to a channel."""
    return next((one for one in switches if (one.place, one.channel) == (place, channel)), None)


def edits_of(switches: Iterable[Switch]) -> dict[str, list[Edit]]:
    """The edits of each layer, one for all channels that are treated alike; those that keep channels come last."""
    together: dict[tuple[EditPlace, Action, Numbers], list[int]] = {}
    for one in switches:
        together.setdefault((one.place, one.action, one.numbers), []).append(one.channel)
    edits: dict[str, list[Edit]] = {}
    for (place, action, numbers), channels in sorted(together.items(), key=lambda item: item[0][1] == "keep"):
        edits.setdefault(place.layer, []).append(_edit(place, action, numbers, channels))
    return edits


def _edit(place: EditPlace, action: Action, numbers: Numbers, channels: list[int]) -> Edit:
    call, path, axis = place.call, place.path, place.axis
    match action:
        case "zero":
            return Zero(channels, call=call, path=path, axis=axis)
        case "mean":
            return ReplaceByMean(channels, call=call, path=path, axis=axis)
        case "scale":
            return Scale(numbers[0] or 0.0, channels, call=call, path=path, axis=axis)
        case "noise":
            return AddNoise(numbers[0] or 0.0, channels, call=call, path=path, axis=axis)
        case "clamp":
            return Clamp(numbers[0], numbers[1], channels, call=call, path=path, axis=axis)
        case "keep":
            return KeepOnly(channels, call=call, path=path, axis=axis)


def words(switch: Switch) -> str:
    """A switch as the reader meets it: ``conv_head · channel 684 off``."""
    place = switch.place
    where = [place.layer or "whole network"]
    if place.call is not None:
        where.append(f"call {place.call + 1}")
    if place.path:
        where.append(place.path)
    return " · ".join([*where, f"channel {switch.channel} {done(switch)}"])


def done(switch: Switch) -> str:
    """What is done, in a word or two."""
    low, high = ("" if one is None else number(one) for one in (*switch.numbers, None, None)[:2])
    limits = f"within {low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}"
    return {
        "zero": "off",
        "mean": "at its mean",
        "scale": f"× {low}",
        "noise": f"with noise, sd {low}",
        "clamp": limits,
        "keep": "kept only",
    }[switch.action]


def place_of(  # noqa: PLR0913 - where a tensor is, how it is read, and what it is
    info: LayerInfo, call: int, path: str, layout: Layout, *, shape: tuple[int, ...], maps: int
) -> EditPlace | str:
    """The place of the channels that a card shows as ``maps``; where none can be edited, the reason in a sentence."""
    if info.is_operation:
        return "An operation inside a forward cannot be edited; choose a layer before or after it."
    name = layout.name if layout.name != "auto" else {1: "C", 2: "NC", 4: "NCHW", 5: "NCDHW"}.get(len(shape), "")
    at = name.find("C")
    if at < 0 or shape[at] != maps or len(shape) == 1:
        return "These values have no axis of channels, so none can be switched off."
    return EditPlace(
        info.name, call if (info.calls or 1) > 1 else None, path, 1 if at == 1 else -1 if at == len(shape) - 1 else at
    )


def fault(switch: Switch, infos: Mapping[str, LayerInfo]) -> str:
    """Why a network has no such channel, as the end of a sentence; ``""`` where it has."""
    place = switch.place
    info = infos.get(place.layer)
    if info is None or info.is_operation or not info.calls:
        return f"and there is no layer “{place.layer}” that runs"
    if place.call is not None and place.call >= info.calls:
        return f"and that layer is called {info.calls} times"
    calls = info.outputs if place.call is None else info.outputs[place.call : place.call + 1]
    shapes = [tensor.shape for call in calls for tensor in call if tensor.path == place.path]
    if not shapes or any(not -len(shape) <= place.axis < len(shape) for shape in shapes):
        return "and that layer returns no such tensor"
    channels = min(shape[place.axis] for shape in shapes)
    return "" if switch.channel < channels else f"and its channels are 0 to {channels - 1}"


def runs(switches: Iterable[Switch]) -> list[list[Switch]]:
    """Switches that follow one another and differ in the channel alone, together."""
    alike = groupby(switches, key=lambda one: (one.place, one.action, one.numbers))
    return [list(group) for _, group in alike]
