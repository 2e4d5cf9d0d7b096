"""How a visitor's file compares with the network, name by name."""

from __future__ import annotations

from collections.abc import Iterator

import streamlit as st

from hookviz.models.checkpoints import CheckpointReport


def show_report(report: CheckpointReport) -> None:
    """The differences as a table, folded away where there is nothing to do about them."""
    rows = list(differences(report))
    title = f"The file name by name: {len(report.matched)} match, {len(rows)} differ"
    with st.expander(title, expanded=not report.fits, key="checkpoint report"):
        if not rows:
            st.caption(f"All {len(report.matched)} values have the network's names and shapes.")
            return
        titles = ("name", "what", "the network has", "the file has")
        columns = zip(*rows, strict=True)
        st.dataframe(
            dict(zip(titles, columns, strict=True)),
            hide_index=True,
            height="content" if len(rows) < 12 else 420,
            alt="Names that are missing, unexpected or of another shape",
        )


def differences(report: CheckpointReport) -> Iterator[tuple[str, str, str, str]]:
    """A row for each name that differs: name, what it is, what the network has, what the file has."""
    for name, expected, found in report.wrong_shape:
        yield name, "another shape", _size(expected), _size(found)
    for name, dtype, other in report.wrong_dtype:
        yield name, "another kind of number", dtype, other
    for name in report.missing:
        yield name, "missing", "yes", "no"
    for name in report.unexpected:
        yield name, "unexpected", "no", "yes"
    for name in report.ignored:
        yield name, "left aside", "", "yes"


def _size(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) or "a scalar"
