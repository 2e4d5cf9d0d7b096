"""What was found: a verdict, a card for each finding, and the images that could not be used."""

from __future__ import annotations

import re

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from hookviz.sanity import Finding, Report
from hookviz.sanity.findings import counted
from hookviz.ui import state
from hookviz.ui.style import escaped, show
from hookviz.views import number

_GLYPHS = {"error": "×", "warning": "!", "note": "i", "good": "✓"}
_AREAS = {"input": "input", "layers": "layers", "weights": "weights", "answer": "answer"}


def show_verdict(report: Report, images: int) -> None:
    """The answer in one sentence, and what it rests on; ``images`` is how many there were to look at."""
    worst = report.worst if report.images else "error"
    kind = worst or "good"
    about = escaped(_about(report, images))
    show(
        f'<div class="hv-verdict">{_mark("good" if kind == "note" else kind)}<div>'
        f'<div class="words">{with_code(report.verdict)}</div><div class="hv-quiet about">{about}</div>'
        "</div></div>"
    )


def show_findings(report: Report, explore: StreamlitPage) -> None:
    """A card for each finding, the worst first."""
    for position, finding in enumerate(report.findings):
        with st.container(border=True, key=f"finding-{position}"):
            if not finding.layers:
                show(finding_markup(finding))
                continue
            said, button = st.columns([5, 1.15], gap="medium", vertical_alignment="center")
            with said:
                show(finding_markup(finding))
            with button:
                _link(position, finding.layers[0], explore)


def show_unreadable(report: Report) -> None:
    """The images that were left out, with reasons."""
    if not report.unreadable:
        return
    rows = "".join(
        f'<tr><td class="hv-mono">{escaped(one.name)}</td><td>{with_code(one.reason)}</td></tr>'
        for one in report.unreadable
    )
    with st.container(border=True, key="unreadable"):
        show(
            f'<div class="hv-head">{counted(len(report.unreadable), "image")} could not be used</div>'
            f'<table class="hv-table hv-unreadable">{rows}</table>'
        )


def finding_markup(finding: Finding) -> str:
    """One finding: how bad, where, what, why, what to try, how much."""
    size = f'<div class="size">{escaped(_size(finding))}</div>' if finding.amount is not None else ""
    return (
        f'<div class="hv-finding {finding.severity}">{_mark(finding.severity)}<div class="rest">'
        f'<div class="kind"><b>{finding.severity.capitalize()}</b> · {_AREAS[finding.area]}</div>'
        f'<div class="what">{with_code(finding.what)}</div><div>{with_code(finding.why)}</div>'
        f'<div><span class="label">What to do:</span> {with_code(finding.advice)}</div>'
        f"{size}{_layers(finding)}</div></div>"
    )


def with_code(text: str) -> str:
    """Text safe for markup, in which what stands between backticks is code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escaped(text))


def _link(position: int, layer: str, explore: StreamlitPage) -> None:
    # A link, not switch_page(), which would forget what the sidebar's widgets hold.
    with st.container(key=f"explore-{position}"):
        st.page_link(
            explore,
            label="Open in Explore",
            help=f"Shows `{layer}`" if layer else "Shows the output of the network",
            query_params=state.link_to_layer(layer),
            width="stretch",
        )


def _mark(kind: str) -> str:
    return f'<span class="hv-mark {kind}" aria-hidden="true">{_GLYPHS[kind]}</span>'


def _size(finding: Finding) -> str:
    measured = f"measured {number(finding.amount or 0.0)}"
    return measured if finding.threshold is None else f"{measured} · threshold {number(finding.threshold)}"


def _layers(finding: Finding) -> str:
    if len(finding.layers) < 2:
        return ""
    names = " ".join(f"<code>{escaped(name or '(whole network)')}</code>" for name in finding.layers)
    return f"<details><summary>All {len(finding.layers)} layers</summary>{names}</details>"


def _about(report: Report, images: int) -> str:
    network = report.network
    parts = [f"{network.name}, {network.weights}", f"{len(report.layers):,} tensors of its layers looked at"]
    if not report.complete:
        parts.insert(0, f"stopped after {len(report.images) + len(report.unreadable):,} of {counted(images, 'image')}")
    return " · ".join(parts)
