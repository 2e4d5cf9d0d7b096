"""Which channel of each card is looked at closely, and what its mosaic asks for."""

from __future__ import annotations

from typing import TypedDict

import streamlit as st

from hookviz.ui.state.cards import asked_number, put_in_address
from hookviz.ui.state.heard import heard
from hookviz.ui.state.notes import changed


class ChannelChoice(TypedDict):
    """What a card sends when a channel is opened, or closed (None), and how many times it has sent something."""

    channel: int | None
    turn: int


class Step(TypedDict, total=False):
    """Where the keys walked to, beyond the page: a ``place`` in the order shown, or a ``channel``; ``open`` it or not.

    ``turn`` counts together with that of choices.
    """

    place: int
    channel: int
    open: bool
    turn: int


class BlockWish(TypedDict):
    """Which block of values is asked for, and of which picture."""

    of: str
    block: int


def mosaic_key(position: int) -> str:
    """The key of a card's mosaic."""
    return f"mosaic-{position}"


def wire_key(position: int) -> str:
    """The key of what a card's mosaic tells choices to."""
    return f"wire-{position}"


def readout_key(position: int) -> str:
    """The key of the line that says what the pointer is on."""
    return f"readout-{position}"


def take_channel(position: int) -> None:
    """Open or close a channel as the card says."""
    changed()
    choice: ChannelChoice | None = heard(wire_key(position), "choice")
    if choice is not None:
        st.session_state[_open(position)] = choice["channel"]
        st.session_state[_turn(position)] = choice["turn"]


def take_step(position: int) -> None:
    """Note where the keys walked to; the card knows its order, and goes there."""
    changed()
    step: Step | None = heard(mosaic_key(position), "step")
    if step is not None:
        st.session_state[_step(position)] = step
        st.session_state[_turn(position)] = step["turn"]


def walk_to(position: int, channel: int) -> None:
    """Open a channel, on whichever page it is; the card goes there."""
    st.session_state[_step(position)] = Step(channel=channel, open=True)


def step_taken(position: int) -> Step | None:
    """Where the keys walked to since this was asked last."""
    step: Step | None = st.session_state.pop(_step(position), None)
    return step


def take_block(position: int) -> None:
    """Note which values are asked for."""
    st.session_state[_block(position)] = heard(readout_key(position), "block")


def block_asked_for(position: int, of: str) -> int | None:
    """Which block of this picture's values was asked for last; None where it was another picture's."""
    wish: BlockWish | None = st.session_state.get(_block(position))
    return wish["block"] if wish and wish["of"] == of else None


def open_channel(position: int, channel: int) -> None:
    """Look at a channel closely."""
    st.session_state[_open(position)] = channel


def settle_channel(position: int, channels: int, belongs_to: str) -> int | None:
    """The open channel, one of those there are: as chosen, as the address asks, or none."""
    owner = f"{_open(position)} belongs to"
    if st.session_state.get(owner) == belongs_to:
        channel = st.session_state.get(_open(position))
    else:
        channel = asked_number(_parameter(position), 0, channels - 1)
    known = isinstance(channel, int) and 0 <= channel < channels
    st.session_state[_open(position)] = channel if known else None
    st.session_state[owner] = belongs_to
    put_in_address(_parameter(position), str(channel) if known else None)
    return channel if known else None


def opened_channel(position: int) -> int | None:
    """The channel that was open on a card when it was settled last."""
    channel: int | None = st.session_state.get(_open(position))
    return channel


def channel_turn(position: int) -> int:
    """Which choice of the card was heard last: its mosaic shows later ones before they are."""
    turn: int = st.session_state.get(_turn(position), 0)
    return turn


def _parameter(position: int) -> str:
    return f"c{position}"


def _open(position: int) -> str:
    return f"channel open on card {position}"


def _turn(position: int) -> str:
    return f"turn of card {position}"


def _step(position: int) -> str:
    return f"step taken on card {position}"


def _block(position: int) -> str:
    return f"values asked for on card {position}"
