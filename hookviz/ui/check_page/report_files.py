"""Taking the report home, for a reader or for a program."""

from __future__ import annotations

import json
import math
from typing import Any

import streamlit as st

from hookviz.sanity import Report


def show_report_files(report: Report) -> None:
    """Buttons for the report as JSON."""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="right", gap="small"):
        st.caption("Download", width="content")
        st.download_button(
            "JSON",
            lambda: strict_json(report),
            file_name=file_name(report, "json"),
            mime="application/json",
            key="report-json",
            type="tertiary",
            on_click="ignore",
        )


def file_name(report: Report, suffix: str) -> str:
    """A name that says what was checked: ``check-resnet18.html``."""
    name = "".join(one if one.isalnum() or one in "-_." else "-" for one in report.network.name)
    return f"check-{name}.{suffix}"


def strict_json(report: Report) -> str:
    """The report as JSON that any reader takes: numbers that are not finite become text."""
    return json.dumps(_strict(report.as_dict()), allow_nan=False, ensure_ascii=False, indent=1)


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strict(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_strict(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
