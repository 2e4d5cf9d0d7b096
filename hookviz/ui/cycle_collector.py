"""Keeping Python's collector of reference cycles away from what stays: it would take longer than the page itself."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def set_aside_afterwards(*, first: bool) -> Iterator[None]:
    """Set aside what is there after the ``first`` run of a session: the network, and whatever it took to show it."""
    try:
        yield
    finally:
        if first:
            set_aside_what_is_there()


def set_aside_what_is_there() -> None:
    """Let later collections skip every object of now: torch's half a million above all.

    Streamlit collects after each run, a click's too, and nothing reaches the browser meanwhile: 280 ms before, 10 ms
    after. Done once per session, so that cycles of sessions that ended are found when the next one begins. What is in
    no cycle goes as ever, when its last name does.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
