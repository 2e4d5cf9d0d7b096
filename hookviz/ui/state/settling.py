"""Keeping what widgets hold within what there is, from run to run and from page to page."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from hookviz.ui.state.notes import default_with_note


def settle_index(key: str, count: int, belongs_to: str, *, first: int) -> None:
    """Keep a page or call number within bounds, and start from the first where it belonged to something else."""
    owner = f"{key} belongs to"
    last = first + max(count, 1) - 1
    value = st.session_state.get(key)
    if st.session_state.get(owner) != belongs_to or not isinstance(value, int):
        value = first
    if st.session_state.get(key, first) != min(value, last):
        st.session_state[key] = min(value, last)
    st.session_state[owner] = belongs_to


def settle_choice(key: str, options: Sequence[str], default: str, *, parameter: str | None = None) -> None:
    """Make a widget's value one of those there are.

    It is as chosen, as chosen before another page was shown, as the address asks in ``parameter``, or the default.
    """
    kept = st.session_state.get(key, st.session_state.get(_kept(key)))
    asked = st.query_params.get(parameter, default) if kept is None and parameter else kept
    if asked not in options and kept is None and parameter:
        asked = default_with_note(parameter, str(asked), default)
    st.session_state[key] = st.session_state[_kept(key)] = asked if asked in options else default


def settle_value(key: str, default: float) -> None:
    """Give a number's widget the value it had before another page was shown, or the default."""
    value = st.session_state.get(key, st.session_state.get(_kept(key), default))
    st.session_state[key] = st.session_state[_kept(key)] = value


def settled(key: str) -> str:
    """The value that a widget was given last."""
    value: str = st.session_state[_kept(key)]
    return value


def _kept(key: str) -> str:
    return f"{key} chosen last"


def ask_for(what: str, of: str) -> None:
    """Note that a button asked for something that takes its time."""
    st.session_state[f"{what} asked for"] = of


def asked_for(what: str) -> str:
    """What a button asked for last, ``""`` before it did."""
    of: str = st.session_state.get(f"{what} asked for", "")
    return of
