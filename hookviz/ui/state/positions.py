"""Which position of a card's maps is looked at: in the open channel, and in the overview of all channels."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias, TypedDict

import streamlit as st

from hookviz.ui.state.cards import asked_of_card, put_in_address
from hookviz.ui.state.heard import heard
from hookviz.ui.state.notes import changed, note, shortened

Position: TypeAlias = tuple[int, int]
Where: TypeAlias = Literal["at", "like"]
"""``at`` a position of the open channel; ``like`` a position of the overview."""


class _Choice(TypedDict):
    """What a map sends: the position, or None for no longer one, and how many times it has sent something."""

    position: list[int] | None
    turn: int


def places_key(where: Where, card: int) -> str:
    """The key of a card's map."""
    return f"places-{where}-{card}"


def take_position(where: Where, card: int) -> None:
    """Look at the position that the map says."""
    changed()
    choice: _Choice | None = heard(places_key(where, card), "position")
    if choice is None:
        return
    position = choice["position"]
    st.session_state[_chosen(where, card)] = None if position is None else (position[0], position[1])
    st.session_state[_turn(where, card)] = choice["turn"]


def position_turn(where: Where, card: int) -> int:
    """Which choice of the map was heard last."""
    turn: int = st.session_state.get(_turn(where, card), 0)
    return turn


def settle_position(where: Where, card: int, height: int, width: int, belongs_to: str) -> Position | None:
    """The position looked at, one of those there are: as chosen, as the address asks, or none."""
    owner, parameter = f"{_chosen(where, card)} belongs to", f"{where}{card}"
    if st.session_state.get(owner) == belongs_to:
        position: Position | None = st.session_state.get(_chosen(where, card))
    else:
        position = _asked(parameter, height, width)
    if position is not None and not (0 <= position[0] < height and 0 <= position[1] < width):
        position = None
    st.session_state[_chosen(where, card)], st.session_state[owner] = position, belongs_to
    put_in_address(parameter, None if position is None else f"{position[0]},{position[1]}")
    return position


def forget_position(where: Where, card: int) -> None:
    """Say in the address that no position is looked at, where nothing is that has one."""
    put_in_address(f"{where}{card}", None)


def _asked(parameter: str, height: int, width: int) -> Position | None:
    asked = asked_of_card(parameter)
    if asked is None:
        return None
    match = re.fullmatch(r"([0-9]{1,6}),([0-9]{1,6})", asked)
    if match and int(match[1]) < height and int(match[2]) < width:
        return int(match[1]), int(match[2])
    note(
        f"The address asks for {parameter}={shortened(asked)}, and there are rows 0 to {height - 1} and columns 0 to "
        f"{width - 1}; it is left out."
    )
    return None


def ask_for_field(card: int) -> None:
    """The map has asked whether the receptive field is found by now."""
    st.session_state[_waits(card)] = True
    st.session_state[_asks(card)] = field_asks(card) + 1


def waits_for_field(card: int) -> bool:
    """Whether this run was asked for by what waits for a receptive field."""
    waits: bool = st.session_state.pop(_waits(card), False)
    return waits


def photo_key(card: int) -> str:
    """The key of a card's channel over the photo."""
    return f"photo-{card}"


def field_asks(card: int) -> int:
    """How often the map has asked."""
    asks: int = st.session_state.get(_asks(card), 0)
    return asks


def _chosen(where: Where, card: int) -> str:
    return f"position {where} on card {card}"


def _turn(where: Where, card: int) -> str:
    return f"turn of position {where} on card {card}"


def _asks(card: int) -> str:
    return f"asked for receptive fields on card {card}"


def _waits(card: int) -> str:
    return f"card {card} waits for a receptive field"
