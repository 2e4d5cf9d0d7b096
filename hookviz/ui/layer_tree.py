"""The folding tree of all layers, a component of our own: folding and filtering happen in the browser alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from hookviz.describe import kind, size
from hookviz.layer_tree import TreeRow, opened
from hookviz.types import LayerInfo
from hookviz.ui import state
from hookviz.ui.own_component import own_component

_show = own_component("layer_tree")

RowData = TypedDict(
    "RowData",
    {
        "parent": "int | None",
        "name": "str | None",
        "title": str,
        "class": str,
        "kind": str,
        "type": str,
        "output": str,
        "parameters": str,
        "calls": "int | None",
        "label": str,
    },
)
"""A row as the browser gets it; ``name`` is None where it stands for repeated blocks."""


def show_layer_tree(network: str, rows: Sequence[TreeRow], most: int) -> None:
    """Show the rows, whose boxes choose layers; a new ``network`` begins with a new tree."""
    chosen = state.chosen_layers()
    _show(
        key=state.TREE,
        data={
            "network": network,
            "rows": [row_data(row) for row in rows],
            "open": opened(rows, chosen),
            "chosen": chosen,
            "most": most,
            "turn": state.tree_turn(),
        },
        on_choice_change=state.take_choice,
    )


def row_data(row: TreeRow) -> RowData:
    """The texts of a row: a layer's, or those of several blocks together."""
    if row.repeats:
        return _repeated_data(row)
    info = row.info
    output = " | ".join(dict.fromkeys(map(size, info.output_shapes)))
    title = row.title or "(whole network)"
    parameters = f"{info.parameters:,}" if info.parameters else ""
    return {
        "parent": row.parent,
        "name": info.name,
        "title": title,
        "class": info.class_name,
        "kind": "operation" if info.is_operation else "",
        "type": kind(info),
        "output": output if info.calls else "not called",
        "parameters": parameters,
        "calls": info.calls,
        "label": _label(info, output, parameters),
    }


def _label(info: LayerInfo, output: str, parameters: str) -> str:
    times = f"{info.calls} calls" if info.calls and info.calls > 1 else ""
    said = [output if info.calls else "not called", parameters and f"{parameters} parameters", times]
    return ", ".join(filter(None, [info.name or "whole network", kind(info), *said]))


def _repeated_data(row: TreeRow) -> RowData:
    blocks = f"{row.repeats} × {row.info.class_name}"
    return {
        "parent": row.parent,
        "name": None,
        "title": row.title,
        "class": "",
        "kind": "group",
        "type": blocks,
        "output": "",
        "parameters": "",
        "calls": None,
        "label": f"{row.title}, {blocks}",
    }
