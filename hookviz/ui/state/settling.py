"""Keeping what widgets hold within what there is, from run to run and from page to page."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from hookviz.ui.state.cards import asked_number, asked_of_card, put_in_address
from hookviz.ui.state.choices import options
from hookviz.ui.state.keys import CMAP, ROBUST, SCALE, SORT
from hookviz.ui.state.notes import default_with_note


def settle_index(key: str, count: int, belongs_to: str, *, first: int, parameter: str | None = None) -> int:
    """Keep a page or call number within bounds, and start from the first where it belonged to something else.

    It is as chosen, as chosen before another page was shown, as the address asks of a card in ``parameter``, where it
    then stays, or the first.
    """
    owner = f"{key} belongs to"
    last = first + max(count, 1) - 1
    if st.session_state.get(owner) == belongs_to:
        value = st.session_state.get(key, st.session_state.get(_kept(key)))
    else:
        value = asked_number(parameter, first, last)
    value = min(value, last) if isinstance(value, int) else first
    if st.session_state.get(key, first) != value:
        st.session_state[key] = value
    st.session_state[owner], st.session_state[_kept(key)] = belongs_to, value
    if parameter:
        put_in_address(parameter, None if value == first else str(value))
    return value


def settle_count(key: str, first: int, last: int, default: int, *, parameter: str) -> None:
    """Give a number's widget the value it had before another page was shown, what the address asks of a card, or one.

    That one, the ``default``, stands in no address.
    """
    value = st.session_state.get(key, st.session_state.get(_kept(key)))
    asked = asked_number(parameter, first, last)
    value = asked if value is None else value
    value = value if isinstance(value, int) and first <= value <= last else default
    st.session_state[key] = st.session_state[_kept(key)] = value
    put_in_address(parameter, None if value == default else str(value))


def turn_to(key: str, value: int) -> None:
    """Give a number's widget a value before it is shown and settled."""
    st.session_state[key] = value


def settle_card_choice(key: str, options: Sequence[str], default: str, *, parameter: str) -> str:
    """Make the value of a card's widget one of those there are.

    It is as chosen, as chosen before another page was shown, as the address asks of the card, or the default.
    """
    kept = st.session_state.get(key, st.session_state.get(_kept(key)))
    asked = asked_of_card(parameter)
    if kept is None and asked is not None:
        kept = asked if asked in options else default_with_note(parameter, asked, default)
    value = kept if kept in options else default
    if st.session_state.get(key, default) != value:
        st.session_state[key] = value
    st.session_state[_kept(key)] = value
    put_in_address(parameter, None if value == default else value)
    return value


def settle_switch(key: str, *, parameter: str) -> None:
    """Turn a card's switch on where the address asks for it, or where it was before another page was shown."""
    on = st.session_state.get(key, st.session_state.get(_kept(key), False))
    on = asked_of_card(parameter) == "1" or on
    if st.session_state.get(key, False) != on:
        st.session_state[key] = on
    st.session_state[_kept(key)] = on
    put_in_address(parameter, "1" if on else None)


def settle_choice(key: str, options: Sequence[str], default: str, *, parameter: str | None = None) -> None:
    """Make a widget's value one of those there are.

    It is as chosen, as chosen before another page was shown, as the address asks in ``parameter``, or the default.
    """
    kept = st.session_state.get(key, st.session_state.get(_kept(key)))
    asked = st.query_params.get(parameter, default) if kept is None and parameter else kept
    if asked not in options and kept is None and parameter:
        asked = default_with_note(parameter, str(asked), default)
    _keep(key, asked if asked in options else default)


def settle_value(key: str, default: float) -> None:
    """Give a number's widget the value it had before another page was shown, or the default."""
    value = st.session_state.get(key, st.session_state.get(_kept(key), default))
    _keep(key, value)


def settle_display() -> None:
    """Keep how channels are shown while nothing on the page asks for it: Streamlit forgets what is not on the page."""
    for key in (SORT, SCALE, CMAP):
        settle_choice(key, options(key), options(key)[0])
    settle_value(ROBUST, default=False)


def settled(key: str) -> str:
    """The value that a widget was given last."""
    value: str = st.session_state[_kept(key)]
    return value


def _keep(key: str, value: object) -> None:
    """Give a widget a value: one that it has stays as it is, for a widget that is told anything is drawn anew."""
    if key not in st.session_state or st.session_state[key] != value:
        st.session_state[key] = value
    st.session_state[_kept(key)] = value


def _kept(key: str) -> str:
    return f"{key} chosen last"


def ask_for(what: str, of: str) -> None:
    """Note that a button asked for something that takes its time."""
    st.session_state[f"{what} asked for"] = of


def asked_for(what: str) -> str:
    """What a button asked for last, ``""`` before it did."""
    of: str = st.session_state.get(f"{what} asked for", "")
    return of
