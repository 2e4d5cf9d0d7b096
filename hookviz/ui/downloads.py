"""Taking a layer home: pictures, raw values, statistics. Files are made when they are asked for."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import streamlit as st

from hookviz.layer_picture import PAPER_DPI, Shown
from hookviz.raw_arrays import raw_arrays
from hookviz.types import LayerInfo
from hookviz.views import figure_bytes, npz_bytes, statistics_csv

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def show_downloads(key: str, info: LayerInfo, shown: Shown, figure: Callable[[], Figure]) -> None:
    """Buttons for the figure as PNG, SVG and PDF, the whole tensor as NPZ and the statistics as CSV."""
    name = info.name or "network"
    part = f"{name}.{file_part(shown.part)}" if shown.part else name
    files: dict[str, tuple[str, Callable[[], bytes | str]]] = {
        "PNG": ("image/png", lambda: figure_bytes(figure(), "png", dpi=PAPER_DPI)),
        "SVG": ("image/svg+xml", lambda: figure_bytes(figure(), "svg")),
        "PDF": ("application/pdf", lambda: figure_bytes(figure(), "pdf")),
        "NPZ": ("application/octet-stream", lambda: npz_bytes(raw_arrays(shown.tensor))),
        "CSV": ("text/csv", lambda: statistics_csv(shown.summary, shown.statistics)),
    }
    with st.container(horizontal=True, vertical_alignment="center", gap="small", width="content"):
        st.caption("Download", width="content")
        for title, (mime, make) in files.items():
            st.download_button(
                title,
                make,
                file_name=f"{name if title == 'NPZ' else part}.{title.lower()}",
                mime=mime,
                key=f"download-{title}-{key}",
                type="tertiary",
                on_click="ignore",
            )


def file_part(words: str) -> str:
    """The part of a tensor for a file's name: ``item-2.slice-3`` of ``item 2 of 49  ·  slice 3 of 8``."""
    parts = (re.sub(r" of [\d,]+$", "", part) for part in words.split("  ·  "))
    return ".".join(part.replace(" ", "-") for part in parts)
