"""From where on something is a finding: every number, with its reason, to be changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import streamlit as st

from hookviz.sanity import Thresholds
from hookviz.ui import state
from hookviz.ui.sentences import literal

_IN_A_ROW = 3
_LEAST = 1e-9
"""They are above zero."""


def choose_thresholds(on_change: Callable[[], None]) -> Thresholds:
    """The numbers as chosen; those of the library to begin with."""
    defaults, about = asdict(Thresholds()), Thresholds.about()
    changed = {name for name in defaults if _settle(name, defaults[name]) != defaults[name]}
    title = "Thresholds" + (f" · {len(changed)} changed" if changed else "")
    with st.expander(title, key="thresholds"):
        st.caption("From where on something is a finding. Changing one judges what was measured anew; no image runs.")
        names = list(defaults)
        for start in range(0, len(names), _IN_A_ROW):
            row = names[start : start + _IN_A_ROW]
            for place, name in zip(st.columns(_IN_A_ROW, gap="medium"), row, strict=False):
                with place:
                    _show_input(name, defaults[name], about[name], on_change)
        if changed:
            st.button("Back to the defaults", key="threshold defaults", on_click=_reset, args=(defaults, on_change))
    return Thresholds(**{name: type(default)(_value(name, default)) for name, default in defaults.items()})


def _show_input(name: str, default: float, about: str, on_change: Callable[[], None]) -> None:
    first, dot, rest = about.partition(". ")
    whole = isinstance(default, int)
    limits: dict[str, Any] = (
        {"min_value": 1, "step": 1} if whole else {"min_value": _LEAST, "step": default / 20, "format": "%g"}
    )
    st.number_input(
        name.replace("_", " ").capitalize(),
        key=_key(name),
        on_change=on_change,
        help=literal(rest) or None,
        **limits,
    )
    st.caption(literal(first + dot.strip()))


def _settle(name: str, default: float) -> float:
    state.settle_value(_key(name), default)
    return _value(name, default)


def _value(name: str, default: float) -> float:
    return state.settled_value(_key(name), default)


def _reset(defaults: dict[str, float], on_change: Callable[[], None]) -> None:
    for name, default in defaults.items():
        state.set_value(_key(name), default)
    on_change()


def _key(name: str) -> str:
    return f"threshold-{name}"
