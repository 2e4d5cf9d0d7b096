"""Sentences for the reader about what could not be as asked."""

from __future__ import annotations

import streamlit as st

_NOTES = "address notes"
_WENT = "address notes were cleared since the whole page ran"

_LONGEST = 200
"""Characters of an address value that are repeated to the reader."""


def begin_notes() -> bool:
    """Begin without notes, once per session; whether this was the beginning."""
    if _NOTES in st.session_state:
        return False
    st.session_state[_NOTES] = []
    return True


def note(sentence: str) -> None:
    """Keep a sentence for the reader until something else is chosen."""
    if sentence not in st.session_state[_NOTES]:
        st.session_state[_NOTES].append(sentence)


def notes() -> list[str]:
    """The sentences to show above everything else."""
    return list(st.session_state[_NOTES])


def changed() -> None:
    """The reader has chosen something: what the address had wrong no longer matters."""
    if st.session_state[_NOTES]:
        st.session_state[_NOTES].clear()
        st.session_state[_WENT] = True


def notes_went() -> bool:
    """Whether notes went since the whole page ran: a part of it that runs alone would leave them where they stand."""
    return bool(st.session_state.pop(_WENT, False))


def shortened(text: str) -> str:
    """As much of an address value as is repeated to the reader."""
    return text[:_LONGEST]


def default_with_note(key: str, asked: str, default: str) -> str:
    """The default in place of something the address asks for; a note says so."""
    note(f"The address asks for {key} “{shortened(asked)}”, which there is not; {default} is shown instead.")
    return default
