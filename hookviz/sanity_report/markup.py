"""Putting markup together so that nothing from outside can become markup."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

_NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
"""Control characters, and halves of file names that are no Unicode; neither can stand in a document."""

_CODE = re.compile("`([^`]*)`")


class Markup(str):
    """Text that is markup already; every other text is escaped."""

    __slots__ = ()


def tag(name: str, *inside: object, **attributes: object) -> Markup:
    """An element with what stands in it; ``class_`` is the attribute ``class``, one that is None is left out."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escaped(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{said}>{joined(inside)}</{name}>")


def image(**attributes: object) -> Markup:
    """An ``img`` element, which has nothing inside."""
    return Markup(tag("img", **attributes).removesuffix("</img>"))


def joined(parts: Iterable[object]) -> Markup:
    """Parts one after the other, text among them escaped."""
    return Markup("".join(part if isinstance(part, Markup) else _escaped(part) for part in parts))


def name(text: object) -> Markup:
    """A name as it is written, apart from the direction in which the words around it run."""
    return tag("bdi", text)


def prose(text: str) -> Markup:
    """A sentence whose `names` in backticks are set as code, and whose percent signs stay with their numbers."""
    pieces = _CODE.split(text)
    kept = [piece.replace(" %", "\N{NO-BREAK SPACE}%") for piece in pieces]
    return joined(tag("code", name(pieces[at])) if at % 2 else kept[at] for at in range(len(pieces)))


def _escaped(text: object) -> str:
    return html.escape(_NOT_TEXT.sub("\N{REPLACEMENT CHARACTER}", str(text)), quote=True)
