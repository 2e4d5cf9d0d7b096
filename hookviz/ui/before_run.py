"""What looking at the chosen layers takes, said before it is done, and the ways out where it is too much."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from hookviz.hooks.estimate import output_bytes
from hookviz.types import LayerInfo
from hookviz.ui import keeping as limits
from hookviz.ui.keeping import Keeping, bytes_kept
from hookviz.ui.style import escaped, show

_TITLES: dict[Keeping, str] = {"half": "Half precision", "statistics": "Statistics only"}


def show_cost(layers: Sequence[LayerInfo], names: Sequence[str], flops: int | None) -> None:
    """What looking at the chosen layers takes, in one line; ``flops`` is None where nobody knows, or not yet."""
    show(f'<p class="hv-quiet hv-cost">{escaped(_in_words(layers, names, flops))}</p>')


def choose_keeping(needed: int) -> Keeping | None:
    """How the chosen layers are kept, which take so many bytes.

    None where exact values would be too much and nothing else was chosen yet.
    """
    if needed <= limits.BYTES_PER_VIEW:
        return "exact"
    ways = [way for way in _TITLES if bytes_kept(needed, way) <= limits.BYTES_PER_VIEW]
    with st.container(border=True, key="too much"):
        st.warning(
            f"Keeping these layers exactly takes {_megabytes(needed)}, and one view may take "
            f"{_megabytes(limits.BYTES_PER_VIEW)}: choose fewer layers, or keep less of each.",
            icon=":material/memory:",
        )
        chosen: Keeping | None = st.segmented_control(
            "Keep of each layer",
            ways,
            key="keeping",
            format_func=lambda way: f"{_TITLES[way]} ({_megabytes(bytes_kept(needed, way))})",
        )
    return chosen


def bytes_needed(layers: Sequence[LayerInfo], names: Sequence[str]) -> int:
    """What a recording of the named layers holds."""
    return sum(output_bytes(info.outputs) for info in layers if info.name in names)


def _in_words(layers: Sequence[LayerInfo], names: Sequence[str], flops: int | None) -> str:
    parts = [f"{_short(layers[0].parameters)} parameters"]
    if flops:
        parts.append(f"{_short(flops)} floating-point operations a forward")
    if names:
        takes = "this layer takes" if len(names) == 1 else f"these {len(names)} layers take"
        parts.append(f"{takes} {_megabytes(bytes_needed(layers, names))}")
    return " · ".join(parts)


def _short(count: int) -> str:
    """A count with two digits or more and its unit: 11.7 million."""
    for unit, name in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:,}"


def _megabytes(count: int) -> str:
    return f"{count / 2**20:.1f} MB" if count < 10 * 2**20 else f"{count / 2**20:,.0f} MB"
