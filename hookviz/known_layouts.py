"""How the axes of a tensor are read, by what is known of the layer that returned it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from hookviz.hooks import Call
from hookviz.types import LayerInfo, Layout


def known_layout(info: LayerInfo, call: Call, path: str) -> Layout | None:
    """How to read the tensor at ``path`` of what a call returned; None where nothing is known of it."""
    if call.index >= len(info.layouts):
        return None
    known = [info.layouts[call.index], *chain(*info.other_layouts[call.index : call.index + 1])]
    return next((layout for one, layout in zip(call.output_info, known, strict=False) if one.path == path), None)


def layouts_by_shape(operations: Iterable[LayerInfo]) -> dict[tuple[int, ...], Layout]:
    """Of operations a shape says how it is read, since that is where their layouts are from."""
    return {
        call[0].shape: layout
        for info in operations
        for call, layout in zip(info.outputs, info.layouts, strict=True)
        if layout is not None
    }
