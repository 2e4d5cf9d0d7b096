"""Keeping Python's collector of reference cycles away from what stays: it would take longer than the page itself."""

from __future__ import annotations

import gc


def set_aside_what_is_there() -> None:
    """Let later collections skip every object of now: torch's half a million above all.

    Streamlit collects after each run, a click's too, and nothing reaches the browser meanwhile: 280 ms before, 10 ms
    after. Done once per session, so that cycles of sessions that ended are found when the next one begins. What is in
    no cycle goes as ever, when its last name does.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
