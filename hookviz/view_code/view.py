from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hookviz.hooks.edits import Edit
from hookviz.layer_picture import PER_PAGE, WHOLE_FIRST_ITEM, Display, Selection
from hookviz.types import ChannelOrder, Layout


@dataclass(frozen=True, kw_only=True)
class View:
    """What a card shows: which tensor of which layer, read how, and which of its channels as which colours.

    ``output`` is what the layer's call returned, for the way to the tensor at ``path`` in it; ``shows`` says what the
    numbers of the maps are of. ``page`` counts from 0. ``channel`` is the one that is open. ``edits`` were at work when
    the layer ran.
    """

    layer: str
    is_operation: bool = False
    call: int = 0
    calls: int = 1
    output: Any = None
    path: str = ""
    layout: Layout
    selection: Selection = WHOLE_FIRST_ITEM
    shows: str = "value"
    order: ChannelOrder = "index"
    display: Display
    page: int = 0
    per_page: int = PER_PAGE
    channel: int | None = None
    edits: Mapping[str, Sequence[Edit]] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """A name for the picture's file."""
        return f"{self.layer or 'network'}.png"

    @property
    def way(self) -> str:
        """How the tensor is reached in the output: ``""``, ``[0]``, ``["out"]``, ``[1].h``."""
        return way_to(self.output, self.path)


def way_to(value: Any, path: str) -> str:
    """A dotted path as Python writes it for this value."""
    way = ""
    for name in path.split(".") if path else ():
        if isinstance(value, Mapping):
            key = next((key for key in value if str(key) == name), name)
            way, value = f"{way}[{key!r}]", value.get(key)
        elif name.isdigit():
            way, value = f"{way}[{name}]", list(value)[int(name)]
        else:
            way, value = f"{way}.{name}", getattr(value, name)
    return way
