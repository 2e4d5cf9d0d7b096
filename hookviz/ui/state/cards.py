"""The cards' part of the address: what each shows beyond defaults, under names that end in its number: ``p0=3``."""

from __future__ import annotations

import re

import streamlit as st

from hookviz.ui.state.notes import note, shortened

_ASKED = "settings of cards asked for in the address"
_SHOWN = "settings of cards shown"
_OF_A_CARD = re.compile(r"(?:c|p|call|view|axes|grid|item|slice|shows|part|naive|at|like|k|beside)(\d{1,3})")


def begin_cards() -> None:
    """Take what the address asks of each card, once per session; each is asked once, for the layer that it means."""
    asked = {name: st.query_params[name] for name in st.query_params if _OF_A_CARD.fullmatch(name)}
    st.session_state[_ASKED], st.session_state[_SHOWN] = asked, {}


def begin_card(position: int) -> None:
    """Begin a card anew: what it shows is settled one by one after this."""
    for name in _of(position, st.session_state[_SHOWN]):
        del st.session_state[_SHOWN][name]


def asked_of_card(parameter: str | None) -> str | None:
    """What the address asks for under this name; None where it does not, or was answered before."""
    asked: str | None = st.session_state[_ASKED].pop(parameter, None)
    return asked


def asked_number(parameter: str | None, first: int, last: int) -> int | None:
    """The number that the address asks for, within bounds; what is no such number leaves a note."""
    asked = asked_of_card(parameter)
    if asked is None:
        return None
    if re.fullmatch(r"[0-9]{1,9}", asked) and first <= int(asked) <= last:
        return int(asked)
    note(f"The address asks for {parameter}={shortened(asked)}, and there are {first} to {last}; it is left out.")
    return None


def asked_pair(parameter: str, most: int) -> tuple[int, int] | None:
    """The two numbers up to ``most`` that the address asks for, ``grid0=3x4``; what is no such pair leaves a note."""
    asked = asked_of_card(parameter)
    if asked is None:
        return None
    match = re.fullmatch(r"([0-9]{1,6})x([0-9]{1,6})", asked)
    if match and max(int(match[1]), int(match[2])) <= most:
        return int(match[1]), int(match[2])
    note(f"The address asks for {parameter}={shortened(asked)}, which is no grid of {most} tokens; it is left out.")
    return None


def put_in_address(parameter: str, value: str | None) -> None:
    """Note what a card shows under this name, None for the default."""
    if value is None:
        st.session_state[_SHOWN].pop(parameter, None)
    else:
        st.session_state[_SHOWN][parameter] = value


def write_card(position: int) -> None:
    """Put what a card shows into the address, beside what is there; what it was asked and has no use for is forgotten.

    A fragment that runs alone ends with this; a run of the whole page ends with the whole address.
    """
    shown: dict[str, str] = st.session_state[_SHOWN]
    for name in _of(position, st.session_state[_ASKED]):
        del st.session_state[_ASKED][name]
    for name in _of(position, dict.fromkeys(st.query_params)):
        if name not in shown:
            del st.query_params[name]
    for name in _of(position, shown):
        if st.query_params.get_all(name) != [shown[name]]:
            st.query_params[name] = shown[name]


def cards_address(count: int) -> dict[str, str]:
    """What the first ``count`` cards show."""
    shown: dict[str, str] = st.session_state[_SHOWN]
    return {name: shown[name] for position in range(count) for name in _of(position, shown)}


def _of(position: int, names: dict[str, str] | dict[str, None]) -> list[str]:
    return [name for name in names if (match := _OF_A_CARD.fullmatch(name)) and int(match[1]) == position]
