"""Keeping Python's collector of reference cycles away from what stays: it would take longer than the page itself."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

_SECONDS_LATER = 1.0
"""Until the browser has what the script sent, and before its reader has found something to click."""


@contextmanager
def set_aside(*, first: bool) -> Iterator[None]:
    """Around the ``first`` run of a session, set aside what is there before it and what it loads: a network above all.

    Streamlit collects after each run, a click's too, and nothing reaches the browser meanwhile: 280 ms over torch's
    half a million objects, 10 ms without them. What is in no cycle goes as ever, when its last name does. Cycles of
    sessions that ended are found a moment after the next one's first run, so that its reader does not wait for that.
    """
    if first:
        gc.freeze()
    try:
        yield
    finally:
        if first:
            gc.collect()
            gc.freeze()
            later = Timer(_SECONDS_LATER, collect_set_aside)
            later.daemon = True
            later.start()


def collect_set_aside() -> None:
    """Let go of what was set aside and is in a cycle that nothing holds, and set the rest aside again."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
