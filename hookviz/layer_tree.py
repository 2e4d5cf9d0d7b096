"""The layers of a network as a tree, in which blocks that repeat stand in one row."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import TypeAlias

from hookviz.types import LayerInfo

_NUMBERED = re.compile(r"(.*?)(\d+)")
_FEWEST = 3
"""Blocks that are worth a row of their own to fold into."""
_CONTAINERS = {"Sequential", "ModuleList", "ModuleDict"}


@dataclass
class LayerNode:
    """A layer, and what runs in it."""

    info: LayerInfo
    children: list[LayerNode] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The last part of the name."""
        return self.info.name.rpartition(".")[2]

    @cached_property
    def structure(self) -> Structure:
        """What makes two blocks the same: the class, and the names and structures of all parts."""
        return self.info.class_name, tuple((child.title, child.structure) for child in self.children)


Structure: TypeAlias = "tuple[str, tuple[tuple[str, Structure], ...]]"


@dataclass(frozen=True, slots=True)
class TreeRow:
    """A row of the folding tree: a layer, or several blocks in a row that repeat one structure.

    ``parent`` is the number of the row that this one folds into, None at the top. ``info`` is the layer; where the row
    stands for ``repeats`` blocks, it is the first of them.
    """

    title: str
    parent: int | None
    info: LayerInfo
    repeats: int = 0


def layer_rows(layers: Sequence[LayerInfo]) -> list[TreeRow]:
    """The rows of the tree, each behind the one it folds into; what is inside a layer keeps the order of ``layers``.

    At least three neighbours of one structure whose names count on (``1``, ``2``; ``denselayer1``, ``denselayer2``)
    fold into one row; ``layer2`` and ``layer3``, plain containers, are stages rather than blocks. The whole network
    comes first, and its parts stand beside it, at the top.
    """
    root, top = _tree(layers)
    rows = [TreeRow("", None, root.info)] if root else []
    _add_rows(rows, top, None)
    return rows


def opened(rows: Sequence[TreeRow], chosen: Collection[str], most: int = 40) -> list[int]:
    """The rows to open at first, by number.

    That is what shows the chosen layers, then level after level for as long as at most ``most`` rows show.
    """
    inside: dict[int | None, list[int]] = {}
    for number, row in enumerate(rows):
        inside.setdefault(row.parent, []).append(number)
    result = {above for number, row in enumerate(rows) if _is_one_of(row, chosen) for above in _above(rows, number)}
    shown = len(inside.get(None, [])) + sum(len(inside[number]) for number in result)
    level = inside.get(None, [])
    while level:
        closed = [number for number in level if number in inside and number not in result]
        shown += sum(len(inside[number]) for number in closed)
        if shown > most:
            break
        result.update(closed)
        level = [below for number in level for below in inside.get(number, [])]
    return sorted(result)


def _tree(layers: Sequence[LayerInfo]) -> tuple[LayerNode | None, list[LayerNode]]:
    nodes = {info.name: LayerNode(info) for info in layers}
    top: list[LayerNode] = []
    for name, node in nodes.items():
        if name:
            around = next((nodes[path] for path in _paths(name) if path in nodes), None)
            (top if around is None else around.children).append(node)
    return nodes.get(""), top


def _paths(name: str) -> Iterator[str]:
    """The paths around a name, the innermost first, without the whole network's."""
    path = name.rpartition(".")[0]
    while path:
        yield path
        path = path.rpartition(".")[0]


def _add_rows(rows: list[TreeRow], nodes: Sequence[LayerNode], parent: int | None) -> None:
    for run in _runs(nodes):
        inside = parent
        if len(run) >= _FEWEST:
            inside = len(rows)
            rows.append(TreeRow(f"{run[0].title} – {run[-1].title}", parent, run[0].info, repeats=len(run)))
        for node in run:
            rows.append(TreeRow(node.title, inside, node.info))
            _add_rows(rows, node.children, len(rows) - 1)


def _runs(nodes: Sequence[LayerNode]) -> Iterator[list[LayerNode]]:
    """Neighbours that repeat one structure, with names that count on by one."""
    for _, run in groupby(enumerate(nodes), key=lambda pair: _repeated(*pair)):
        yield [node for _, node in run]


def _repeated(position: int, node: LayerNode) -> tuple[object, ...]:
    numbered = _NUMBERED.fullmatch(node.title)
    if numbered is None or node.info.is_operation or (numbered[1] and node.info.class_name in _CONTAINERS):
        return (position,)
    return node.structure, numbered[1], int(numbered[2]) - position


def _is_one_of(row: TreeRow, names: Collection[str]) -> bool:
    return not row.repeats and row.info.name in names


def _above(rows: Sequence[TreeRow], number: int) -> Iterator[int]:
    parent = rows[number].parent
    while parent is not None:
        yield parent
        parent = rows[parent].parent
