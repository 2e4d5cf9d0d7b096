"""A short table of bars whose rows are buttons, a component of our own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypedDict

from hookviz.ui import state
from hookviz.ui.own_component import own_component

_show = own_component("bar_rows")


class BarRow(TypedDict):
    """A row: what choosing it sends, its name, how long the bar is from −1 to 1, and a text for each other column."""

    id: str
    name: str
    share: float
    texts: list[str]


def show_bar_rows(  # noqa: PLR0913 - what is shown, and what choosing a row does
    key: str,
    rows: Sequence[BarRow],
    *,
    label: str,
    does: str,
    on_choice: Callable[[str], None],
    heads: Sequence[str] = (),
    finds: str = "",
) -> None:
    """Show rows, of which each is a button that says what it ``does``.

    ``heads`` names the columns of texts; what a row opens comes into sight: ``finds`` is the class of it, or ``"card"``
    for the card of the layer that the row is of.
    """
    _show(
        key=key,
        data={
            "rows": list(rows),
            "heads": list(heads),
            "columns": max((len(row["texts"]) for row in rows), default=0),
            "label": label,
            "does": does,
            "finds": finds,
        },
        on_choice_change=lambda: _tell(key, on_choice),
    )


def _tell(key: str, on_choice: Callable[[str], None]) -> None:
    chosen = state.row_chosen(key)
    if chosen is not None:
        on_choice(chosen)
