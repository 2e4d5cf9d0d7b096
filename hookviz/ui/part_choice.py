"""Which part of a tensor a card shows, and as which numbers: controls appear only where there is a choice."""

from __future__ import annotations

import streamlit as st
from torch import Tensor

from hookviz.layer_picture import Selection, item_name, slice_name
from hookviz.layout import axis_lengths
from hookviz.types import Layout
from hookviz.ui import state
from hookviz.value_kinds import value_kinds


def choose_part(position: int, belongs_to: str, tensor: Tensor, layout: Layout) -> Selection:
    """The element of the batch, the slice of a volume and the kind of numbers, by default the first of each.

    ``belongs_to`` says whose the choice is: with another one it starts anew.

    Raises:
        LayoutError: the layout does not fit the tensor.
    """
    lengths = axis_lengths(tensor.shape, layout.name)
    items, slices, kinds = lengths.get("N", 1), lengths.get("D", 0), value_kinds(tensor)
    if items < 2 and slices < 2 and len(kinds) < 2:
        return Selection(depth=0 if slices else None)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"part-row-{position}"):
        kind = _choose_kind(position, kinds) if len(kinds) > 1 else "auto"
        item = _choose_number("item", position, belongs_to, item_name(layout), items)
        depth = _choose_number("slice", position, belongs_to, slice_name(layout), slices, slide=True)
    return Selection(item, depth if slices else None, kind)


def taken_over(tensor: Tensor, layout: Layout) -> str:
    """What the statistics of a layer are of, where that is more than its picture shows; else ``""``."""
    lengths = axis_lengths(tensor.shape, layout.name)
    counted = ((lengths.get("N", 1), item_name(layout)), (lengths.get("D", 1), slice_name(layout)))
    return " × ".join(f"all {count:,} {name}s" for count, name in counted if count > 1)


def _choose_kind(position: int, kinds: tuple[str, ...]) -> str:
    key = f"shows-{position}-{kinds[0].partition(' ')[0]}"
    state.settle_card_choice(key, kinds, kinds[0], parameter=f"shows{position}")
    kind = st.segmented_control(
        "What is shown of each number",
        kinds,
        default=kinds[0],
        required=True,
        key=key,
        format_func=lambda kind: kind.removesuffix(" part").capitalize(),
        label_visibility="collapsed",
    )
    return kind or kinds[0]


def _choose_number(  # noqa: PLR0913 - which number, on which card, of what, and how it is chosen
    axis: str, position: int, belongs_to: str, name: str, count: int, *, slide: bool = False
) -> int:
    """Counted from 1 on the screen, in words that read in one line: Window [3] of 49."""
    key = f"{axis}-{position}"
    state.settle_index(key, count, belongs_to, first=1, parameter=f"{axis}{position}")
    if count < 2:
        return 0
    label = f"{name.capitalize()} of {count}"
    st.caption(name.capitalize(), width="content")
    if slide:
        number = st.slider(label, 1, count, step=1, key=key, width=220, label_visibility="collapsed")
    else:
        number = st.number_input(label, 1, count, step=1, key=key, width=140, label_visibility="collapsed")
    st.caption(f"of {count:,}", width="content")
    return int(number) - 1
