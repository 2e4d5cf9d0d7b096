"""The page Check: is this network, and the way it is fed, all right?"""

from __future__ import annotations

import time
from collections.abc import Hashable

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from hookviz.models import Model
from hookviz.sanity import Inspection, Report
from hookviz.ui import state
from hookviz.ui.check_page import controls
from hookviz.ui.check_page.charts import show_charts
from hookviz.ui.check_page.checks import Order, checks, loading
from hookviz.ui.check_page.findings_view import show_findings, show_unreadable, show_verdict
from hookviz.ui.check_page.jobs import Job
from hookviz.ui.check_page.report_files import show_report_files
from hookviz.ui.check_page.side_by_side import show_side_by_side
from hookviz.ui.check_page.sources import Images
from hookviz.ui.check_page.style import apply_check_style
from hookviz.ui.check_page.threshold_inputs import choose_thresholds
from hookviz.ui.resources import ChosenModel
from hookviz.ui.sentences import one_sentence, sentence
from hookviz.ui.sidebar import ChosenImage

_EVERY = 1.0
"""Seconds between two looks at the progress."""

_ABOUT = (
    "Runs the network and says in plain words what is wrong with the input, the layers, the weights or the answers."
)
_KEPT = "Other thresholds, or another network to compare with, judge what was measured anew; no image runs again."


def show_check_page(chosen: ChosenModel, model: Model, image: ChosenImage, explore: StreamlitPage) -> dict[str, str]:
    """Show the page; gives what of it goes into the address."""
    apply_check_style()
    with st.container(border=True, key="check-controls"):
        which, beside, button = st.columns([2.6, 2.4, 1], gap="medium", vertical_alignment="bottom")
        with which:
            source = controls.choose_source(model)
        with beside:
            against = controls.choose_against(state.changed)
        images = controls.choose_images(source, model, image)
        status = st.container(key="check-status")
        thresholds = choose_thresholds(state.changed)
    view = controls.address(source, against)
    if isinstance(images, str):
        with button:
            _show_button("Check", disabled=True)
        status.caption(sentence(images))
        return view
    order = Order(chosen.key, images.key, against, thresholds, state.visitor())
    with one_sentence():
        _judge_if_asked(order, chosen)
        with button:
            _show_action(order, model, images)
        with status:
            _show_status(order)
        _show_report(order, len(images.items), explore)
    return view


def _judge_if_asked(order: Order, chosen: ChosenModel) -> None:
    """Let what was measured be judged, where this visitor asked for it, or sees a report on it."""
    key, inspection = checks().report_key(order), checks().inspection(order)
    if inspection is None or checks().report(key) is not None or _inspecting(order) is not None:
        return
    if checks().judging.job(key) is None and (
        state.check_is_asked_for(order.measured) or state.report_shown_last(order.measured)
    ):
        checks().judge(key, inspection, loading(order.against, chosen.device))


def _show_action(order: Order, model: Model, images: Images) -> None:
    """The one button: check, cancel, or go on."""
    job, part = _inspecting(order), _part(order)
    if job is not None:
        st.button("Cancel", key="cancel check", on_click=_cancel, args=(order,), disabled=job.stopping, width="stretch")
    elif _judging(order) is not None:
        _show_button("Check", disabled=True)
    elif checks().report(checks().report_key(order)) is not None and part is None:
        _show_button("Checked", disabled=True)
    else:
        _show_button("Check" if part is None else "Go on", start=(order, model, images))


def _show_button(title: str, *, disabled: bool = False, start: tuple[Order, Model, Images] | None = None) -> None:
    # The title is part of the key: Streamlit would take a click on one for a click on the other.
    st.button(
        title,
        type="primary",
        key=f"button {title}",
        disabled=disabled,
        on_click=_start if start else None,
        args=start or (),
        width="stretch",
    )


def _start(order: Order, model: Model, images: Images) -> None:
    state.changed()
    state.ask_for_check(order.measured)
    checks().judging.forget_failure(checks().report_key(order))
    checks().start(order, model, images)


def _cancel(order: Order) -> None:
    checks().inspecting.stop(order.own)


def _show_status(order: Order) -> None:
    """How far it is, what went wrong, or what the button does."""
    failed = checks().inspecting.job(order.own) or checks().judging.job(checks().report_key(order))
    if _inspecting(order) is not None:
        _show_progress(order)
    elif _judging(order) is not None:
        _show_judging(order)
    elif failed is not None and failed.failure:
        reason = failed.failure.partition("; load_model(")[0]  # what to do in code
        st.error(sentence(reason), icon=":material/error:")
    elif (part := _part(order)) is not None:
        st.caption(f"Stopped after {part.done:,} of {len(part.items):,} images; “Go on” looks at the others.")
    else:
        st.caption(_ABOUT if checks().report(checks().report_key(order)) is None else _KEPT)


@st.fragment(run_every=_EVERY)
def _show_progress(order: Order) -> None:
    """Show how far the images are, again and again; a run of the whole page ends that."""
    job = _inspecting(order)
    if job is None:
        st.rerun(scope="app")
    st.progress(min(job.done / job.total, 1.0), progress_words(job))


@st.fragment(run_every=_EVERY)
def _show_judging(order: Order) -> None:
    job = _judging(order)
    if job is None:
        st.rerun(scope="app")
    st.progress(
        1.0, "Waiting for the checks of others" if job.waits else f"Judging what was measured · {_seconds(job)} s"
    )


def progress_words(job: Job) -> str:
    """How far it is, and how long the rest takes if it goes on like this."""
    if job.waits:
        return "Waiting for the checks of others"
    images = f"{job.done:,} of {job.total:,} image{'' if job.total == 1 else 's'}"
    if job.stopping:
        return f"{images} · stopping after this one"
    if not job.done:
        return f"{images} · {_seconds(job)} s"
    left = _seconds(job) / job.done * (job.total - job.done)
    return f"{images} · about {max(1, round(left))} s left"


def _seconds(job: Job) -> int:
    return round(time.monotonic() - job.began)


def _show_report(order: Order, images: int, explore: StreamlitPage) -> None:
    """The report, or while another one is made of the same images, the last one."""
    key: Hashable = checks().report_key(order)
    report = checks().report(key)
    if report is None and _judging(order) is not None:
        key = state.report_shown_last(order.measured) or key
        report = checks().report(key)
    if report is None:
        return
    state.report_shown(order.measured, key)
    _show(key, report, images, explore)
    inspection = checks().inspection(order)
    if inspection is not None and report.compared is not None:
        show_side_by_side(key, order, inspection, report.compared)


def _show(key: Hashable, report: Report, images: int, explore: StreamlitPage) -> None:
    with st.container(key="report"):
        said, files = st.columns([4, 1.6], gap="medium", vertical_alignment="center")
        with said:
            show_verdict(report, images)
        with files:
            show_report_files(report)
        show_findings(report, explore)
        show_unreadable(report)
        show_charts(key, report)


def _inspecting(order: Order) -> Job | None:
    """The job that looks at the images, while it does; one that is to end before its turn came is as good as ended."""
    job = checks().inspecting.job(order.own)
    return None if job is None or job.ended or (job.waits and job.stopping) else job


def _judging(order: Order) -> Job | None:
    job = checks().judging.job(checks().report_key(order))
    return None if job is None or job.ended else job


def _part(order: Order) -> Inspection | None:
    """What was measured where it was stopped early."""
    inspection = checks().inspection(order)
    return None if inspection is None or inspection.finished else inspection
