"""Taking a layer home: pictures, raw values, statistics. Files are made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import streamlit as st
import torch
from matplotlib.figure import Figure
from torch import Tensor

from hookviz.types import LayerInfo
from hookviz.ui.layer_views import Shown
from hookviz.views import figure_bytes, npz_bytes, statistics_csv


def show_downloads(key: str, info: LayerInfo, shown: Shown, figure: Callable[[], Figure]) -> None:
    """Buttons for the figure as PNG, SVG and PDF, the values as NPZ and the statistics as CSV."""
    name = info.name or "network"
    files: dict[str, tuple[str, Callable[[], bytes | str]]] = {
        "PNG": ("image/png", lambda: figure_bytes(figure(), "png", dpi=200)),
        "SVG": ("image/svg+xml", lambda: figure_bytes(figure(), "svg")),
        "PDF": ("application/pdf", lambda: figure_bytes(figure(), "pdf")),
        "NPZ": ("application/octet-stream", lambda: npz_bytes(raw_arrays(shown.tensor))),
        "CSV": ("text/csv", lambda: statistics_csv(shown.summary, shown.statistics)),
    }
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption("Download", width="content")
        for title, (mime, make) in files.items():
            st.download_button(
                title,
                make,
                file_name=f"{name}.{title.lower()}",
                mime=mime,
                key=f"download-{title}-{key}",
                type="tertiary",
                on_click="ignore",
            )


def raw_arrays(tensor: Tensor) -> dict[str, np.ndarray]:
    """A tensor's values in their own dtype, for an NPZ file.

    numpy has no bfloat16, no float8 and no quantized types: of these the file holds the stored bits or integers, and
    ``dtype`` says how to read them.
    """
    plain = tensor.detach().cpu()
    arrays = {"dtype": np.array(str(tensor.dtype).removeprefix("torch."))}
    if plain.is_quantized:
        return arrays | {"values": plain.int_repr().numpy(), "dequantized": plain.dequantize().numpy()}
    if plain.layout != torch.strided:
        plain = plain.to_dense()
    plain = plain.resolve_conj().resolve_neg()
    if plain.dtype == torch.bfloat16:
        return arrays | {"values": plain.view(torch.uint16).numpy()}
    if plain.dtype.itemsize == 1 and plain.dtype.is_floating_point:
        return arrays | {"values": plain.view(torch.uint8).numpy()}
    return arrays | {"values": plain.numpy()}
