"""Switches as part of an address: ``edit=conv_head:684:zero``, ``edit=layer1.0.relu:3,7:scale:2:call=2``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from urllib.parse import quote, unquote

from hookviz.ui.switches import COUNT, Action, EditPlace, Numbers, Switch, runs

_CHANNELS = re.compile(r"[0-9]{1,7}(,[0-9]{1,7})*")
_MORE = re.compile(r"(?:call=(?P<call>[1-9][0-9]{0,5})|axis=(?P<axis>-?[0-9])|part=(?P<part>.*))")


def written(switches: Iterable[Switch]) -> list[str]:
    """One text for each action, with all channels that follow one another in the list."""
    return [_text(together) for together in runs(switches)]


def read(text: str) -> tuple[Switch, ...] | None:
    """The switches of one text; None where it says nothing that there is."""
    layer, *fields = text.split(":")
    if len(fields) < 2 or not _CHANNELS.fullmatch(fields[0]) or fields[1] not in COUNT:
        return None
    action: Action = fields[1]
    numbers, more = fields[2 : 2 + COUNT[action]], fields[2 + COUNT[action] :]
    place, values = _place(unquote(layer), more), _numbers(action, numbers)
    if place is None or values is None:
        return None
    channels = dict.fromkeys(map(int, fields[0].split(",")))
    return tuple(Switch(place, channel, action, values) for channel in channels)


def _text(together: list[Switch]) -> str:
    place, numbers = together[0].place, together[0].numbers
    more = []
    if place.call is not None:
        more.append(f"call={place.call + 1}")
    if place.axis != 1:
        more.append(f"axis={place.axis}")
    if place.path:
        more.append(f"part={_quoted(place.path)}")
    channels = ",".join(str(one.channel) for one in together)
    said = ["" if one is None else repr(float(one)).removesuffix(".0") for one in numbers]
    return ":".join([_quoted(place.layer), channels, together[0].action, *said, *more])


def _quoted(text: str) -> str:
    """Only what the format itself uses: names of layers are readable as they are."""
    return quote(text, safe="".join(chr(code) for code in range(33, 127) if chr(code) not in ":%"))


def _place(layer: str, more: list[str]) -> EditPlace | None:
    place = EditPlace(layer)
    for one in more:
        match = _MORE.fullmatch(one)
        if match is None:
            return None
        call, axis, part = match["call"], match["axis"], match["part"]
        place = EditPlace(
            layer,
            place.call if call is None else int(call) - 1,
            place.path if part is None else unquote(part),
            place.axis if axis is None else int(axis),
        )
    return place


def _numbers(action: Action, texts: list[str]) -> Numbers | None:
    try:
        values = tuple(None if text == "" else float(text) for text in texts)
    except ValueError:
        return None
    given = [value for value in values if value is not None]
    enough = len(given) == COUNT[action] or (action == "clamp" and given and len(values) == 2)
    return values if enough and all(map(math.isfinite, given)) else None
