"""Taking the report home, for a reader or for a program."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import streamlit as st

from hookviz.sanity import Report


def show_report_files(report: Report) -> None:
    """Buttons for the report as a page that needs nothing else, and as JSON; each is made when it is asked for."""
    files: dict[str, tuple[str, Callable[[], str]]] = {
        "Report": ("text/html", report.to_html),
        "JSON": ("application/json", lambda: strict_json(report)),
    }
    with st.container(horizontal=True, vertical_alignment="center", key="report-files", gap="small"):
        st.caption("Download", width="content")
        for title, (mime, make) in files.items():
            suffix = mime.partition("/")[2]
            st.download_button(
                title,
                make,
                file_name=file_name(report, suffix),
                mime=mime,
                key=f"download-{suffix}",
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
