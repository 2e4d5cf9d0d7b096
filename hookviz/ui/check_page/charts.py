"""What was measured: the image fed in other ways, every layer, the layers beside another network's, and the answers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal, TypeAlias

import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from hookviz.class_names import numbered_class_names
from hookviz.sanity import Compared, InputTrial, LayerRow, Report
from hookviz.ui.prediction_panel import data_url
from hookviz.ui.style import escaped, show, theme_name
from hookviz.views import figure_bytes, png_bytes, ridge_figure

_ROWS_WITHOUT_SCROLLING = 12

Columns: TypeAlias = dict[str, list[Any]]


def show_charts(key: Hashable, report: Report) -> None:
    """Everything that was measured, one below the other; ``key`` is what the report is known by."""
    names = class_names(report)
    if report.input_trials:
        which = "The image" if len(report.images) == 1 else "The first image"
        _show_head(f"{which}, fed rightly and in the usual wrong ways")
        show(trials_markup(report.input_trials, names))
    if report.layers:
        _show_head("Layers, in the order of the run")
        _show_layers(report.layers)
        values, beside = st.columns([1.7, 1], gap="large") if report.compared else (st.container(), st.container())
        with values:
            _show_ridge(key, report)
        with beside:
            if report.compared is not None:
                _show_compared(report.compared)
    if report.answers:
        _show_answers(report, names)


def class_names(report: Report) -> Sequence[str]:
    """Names for all classes that were answered; numbers where the network brings none."""
    indices = [one.index for one in report.answers] + [one.label for one in report.answers if one.label is not None]
    last = max(indices, default=-1)
    return report.categories if last < len(report.categories) else numbered_class_names(last + 1)


def trials_markup(trials: Sequence[InputTrial], names: Sequence[str]) -> str:
    """A picture for each way, as the network takes it, with the answer; the right one is framed."""
    return f'<div class="hv-trials">{"".join(_trial(one, names) for one in trials)}</div>'


def likeness_markup(compared: Compared) -> str:
    """A bar for each layer, from the input to the output."""
    rows = "".join(
        f'<span class="name hv-mono" title="{escaped(one.layer)}">{escaped(one.layer)}</span>'
        f'<span class="track"><div class="bar" style="width:{100 * max(0.0, one.cka or 0.0):.1f}%"></div></span>'
        f'<span class="value">{"–" if one.cka is None else f"{one.cka:.2f}"}</span>'
        for one in compared.layers
    )
    return f'<div class="hv-likeness">{rows}</div>'


def _trial(trial: InputTrial, names: Sequence[str]) -> str:
    picture = ""
    if trial.pixels is not None:
        title = escaped(f"The input {trial.title}")
        picture = f'<img src="{data_url(png_bytes(trial.pixels))}" alt="{title}">'
    answer = ""
    if trial.index is not None and trial.probability is not None and trial.entropy is not None:
        name = names[trial.index] if trial.index < len(names) else f"class {trial.index}"
        answer = (
            f'<div class="class">{escaped(name)} · {100 * trial.probability:.1f} %</div>'
            f'<div class="numbers">entropy {trial.entropy:.2f}</div>'
        )
    right = " right" if trial.is_right else ""
    way = "✓ as the weights want it" if trial.is_right else trial.title
    return (
        f'<figure class="hv-trial{right}"><div class="picture">{picture}</div>'
        f'<figcaption><div class="way">{escaped(way)}</div>{answer}</figcaption></figure>'
    )


def _show_head(text: str, about: str = "") -> None:
    quiet = f'<div class="hv-quiet" style="margin-bottom:.45rem">{escaped(about)}</div>' if about else ""
    show(f'<div class="hv-head" style="margin-top:1rem">{escaped(text)}</div>{quiet}')


def _show_layers(rows: Sequence[LayerRow]) -> None:
    columns: Columns = {
        "layer": [_name(row) for row in rows],
        "type": [row.class_name for row in rows],
        "output": [" × ".join(map(str, row.shape)) for row in rows],
        "mean": [row.summary.mean for row in rows],
        "std": [row.summary.std for row in rows],
        "min": [row.summary.min for row in rows],
        "max": [row.summary.max for row in rows],
        "not finite": [row.summary.count - row.summary.finite for row in rows],
        "zeros": [row.summary.sparsity for row in rows],
        "channels": [row.channels for row in rows],
        "dead": [row.dead for row in rows],
        "constant": [row.constant for row in rows],
        "equal": [row.duplicated for row in rows],
        "gain": [row.gain for row in rows],
    }
    numbers = {name: st.column_config.NumberColumn(format="%.3g") for name in ("mean", "std", "min", "max")}
    config: dict[str, ColumnConfig | str | None] = {
        **numbers,
        "layer": st.column_config.TextColumn(pinned=True, width="medium"),
        "zeros": st.column_config.ProgressColumn(format="percent", min_value=0, max_value=1, width=130),
        "dead": st.column_config.NumberColumn(help="Channels that are zero at every position of every image."),
        "constant": st.column_config.NumberColumn(help="Channels with one value everywhere, not zero."),
        "equal": st.column_config.NumberColumn(help="Channels equal to an earlier one everywhere."),
        "gain": st.column_config.NumberColumn(
            format="%.3g", help="Root mean square of what goes out over that of what comes in."
        ),
    }
    for name in ("not finite", "constant", "equal"):
        if not any(columns[name]):
            del columns[name]
    _show_table(columns, config, "Numbers of every layer over all images")


def _show_ridge(key: Hashable, report: Report) -> None:
    _show_head("The values of every layer", "All over one axis, from the input to the output.")
    picture = data_url(_ridge(str(key), theme_name(), report.layers), "image/svg+xml")
    show(f'<div class="hv-ridge"><img src="{picture}" alt="Histograms of {len(report.layers)} tensors"></div>')


@st.cache_data(show_spinner=False, max_entries=16)
def _ridge(key: str, theme: Literal["light", "dark"], _rows: Sequence[LayerRow]) -> bytes:  # noqa: ARG001  # the key
    layers = [(_name(row), row.summary) for row in _rows]
    figure = ridge_figure(layers, title=f"{len(layers)} tensors", theme=theme)
    return figure_bytes(figure, "svg")


def _name(row: LayerRow) -> str:
    call = f" · call {row.call}" if row.call > 1 else ""
    return f"{row.layer or '(whole network)'}{f' · {row.part}' if row.part else ''}{call}"


def _show_compared(compared: Compared) -> None:
    _show_head(
        f"Beside {compared.other}",
        "How alike layers respond: 1 alike up to rotation and scale, about 0 not (linear CKA).",
    )
    if compared.layers:
        show(likeness_markup(compared))
    else:
        st.caption("The two have no layers of the same names.")


def _show_answers(report: Report, names: Sequence[str]) -> None:
    if len(report.answers) > 1:
        _show_head("Answers")
        labelled = any(one.label is not None for one in report.answers)
        columns: Columns = {
            "image": [one.image for one in report.answers],
            "answer": [names[one.index] for one in report.answers],
            "probability": [one.probability for one in report.answers],
            "entropy": [one.entropy for one in report.answers],
        }
        if labelled:
            columns |= {
                "label": [None if one.label is None else names[one.label] for one in report.answers],
                "place of the label": [one.rank for one in report.answers],
            }
        config: dict[str, ColumnConfig | str | None] = {
            "probability": st.column_config.ProgressColumn(format="percent", min_value=0, max_value=1),
            "entropy": st.column_config.NumberColumn(format="%.2f", help="Share of the largest possible, 0 to 1."),
        }
        _show_table(columns, config, "What the network said of every image")
    if report.steadiness:
        _show_head("When the image changes a little", "How many of the first images keep their most probable class.")
        rows = "".join(
            f"<tr><td>{escaped(one.change)}</td><td>{one.same} of {one.tried} "
            f"{'keeps' if one.tried == 1 else 'keep'} the answer</td></tr>"
            for one in report.steadiness
        )
        show(f'<table class="hv-table" style="max-width:26rem">{rows}</table>')


def _show_table(columns: Columns, config: dict[str, ColumnConfig | str | None], alt: str) -> None:
    count = len(next(iter(columns.values())))
    height: Literal["content"] | int = "content" if count <= _ROWS_WITHOUT_SCROLLING else 460
    st.dataframe(columns, hide_index=True, height=height, column_config=config, alt=alt)
