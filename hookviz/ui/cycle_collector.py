"""Keeping Python's collector of reference cycles away from what stays: it would take longer than the page itself."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def set_aside(*, first: bool) -> Iterator[None]:
    """Around the ``first`` run of a session, set aside what is there before it and what it loads: a network above all.

    Of the latter, what is in a cycle that nothing holds goes before.
    """
    if first:
        set_aside_what_is_there()
    try:
        yield
    finally:
        if first:
            gc.collect()
            gc.freeze()


def set_aside_what_is_there() -> None:
    """Let later collections skip every object of now: torch's half a million above all.

    Streamlit collects after each run, a click's too, and nothing reaches the browser meanwhile: 280 ms before, 10 ms
    after. Done once per session, so that cycles of sessions that ended are found when the next one begins; before the
    first one none has, and nothing is to be found. What is in no cycle goes as ever, when its last name does.
    """
    if gc.get_freeze_count():
        gc.unfreeze()
        gc.collect()
    gc.freeze()
