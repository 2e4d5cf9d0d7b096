"""Rankings made in the background: begun once, left by who no longer waits, kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hookviz.errors import HookvizError
from hookviz.hooks import ChannelRanking
from hookviz.ui.ranking_view import ranking_rows
from hookviz.ui.rankings import Job, Rankings, Report

MADE = ChannelRanking(
    layer="conv",
    target=3,
    logit=2.0,
    probability=0.5,
    logit_drop=np.array([0.5, -1.0, 2.0]),
    probability_drop=np.array([0.01, -0.04, 0.02]),
    mean_activation=np.array([3.0, 1.0, float("nan")]),
    gradient_times_activation=None,
    batched=True,
    rounding=1e-6,
)


class Maker:
    """Makes a ranking of three channels, one each time it is let."""

    def __init__(self) -> None:
        self.may = threading.Semaphore(0)
        self.begun = 0
        self.raised: BaseException | None = None

    def __call__(self, report: Report) -> ChannelRanking:
        self.begun += 1
        for channel in range(3):
            self.may.acquire(timeout=20)
            try:
                report(channel + 1, 3)
            except BaseException as error:
                self.raised = error
                raise
        return MADE


def wait_for(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def job_of(rankings: Rankings) -> Job:
    job = rankings.job("key")
    assert job is not None
    return job


def test_progress_is_seen_and_the_ranking_is_there_afterwards() -> None:
    rankings, maker = Rankings(), Maker()
    rankings.start("key", maker)
    job = job_of(rankings)
    for done in (1, 2):
        maker.may.release()
        wait_for(lambda: job.done == done)  # noqa: B023  # waited for at once
        assert rankings.find("key") is None
    maker.may.release()
    wait_for(lambda: job.ended)
    assert rankings.find("key") is MADE
    assert rankings.job("key") is None


def test_who_leaves_last_ends_it() -> None:
    """C23: and the other visitor's goes on."""
    rankings, maker = Rankings(), Maker()
    rankings.start("key", maker)
    rankings.start("key", maker)
    job = job_of(rankings)
    rankings.leave("key")
    maker.may.release()
    wait_for(lambda: job.done == 1)
    assert (maker.begun, maker.raised, job.ended) == (1, None, False)
    rankings.leave("key")
    maker.may.release()
    wait_for(lambda: job.ended)
    assert (job.done, rankings.find("key"), rankings.job("key")) == (2, None, None)


def test_what_no_page_asks_about_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """C75: the tab was closed."""
    monkeypatch.setattr("hookviz.ui.rankings.PATIENCE", 0.05)
    rankings, maker = Rankings(), Maker()
    rankings.start("key", maker)
    job = job_of(rankings)
    time.sleep(0.1)
    maker.may.release()
    wait_for(lambda: job.ended)
    assert rankings.find("key") is None


def test_a_left_ranking_can_be_started_again_before_it_has_ended() -> None:
    rankings, maker, again = Rankings(), Maker(), Maker()
    rankings.start("key", maker)
    left = job_of(rankings)
    rankings.leave("key")
    rankings.start("key", again)
    job = job_of(rankings)
    assert job is not left
    maker.may.release()
    wait_for(lambda: left.ended)
    assert job_of(rankings) is job
    again.may.release(3)
    wait_for(lambda: job.ended)
    assert rankings.find("key") is MADE


def test_a_failure_is_a_sentence_and_the_next_start_begins_anew(caplog: pytest.LogCaptureFixture) -> None:
    rankings = Rankings()

    def refuse(_: Report) -> ChannelRanking:
        raise HookvizError("no scores")

    def break_down(_: Report) -> ChannelRanking:
        raise ZeroDivisionError

    for make, said in (
        (refuse, "no scores"),
        (break_down, "The channels could not be ranked; the log has the details."),
    ):
        rankings.start("key", make)
        wait_for(lambda: job_of(rankings).ended)
        assert job_of(rankings).failure == said
    assert "ZeroDivisionError" in caplog.text


def test_rows_are_in_order_with_bars_of_what_they_are_sorted_by() -> None:
    rows = ranking_rows(MADE, "probability_drop", ["probability_drop", "logit_drop", "mean_activation"])
    assert [(row["id"], row["share"], row["texts"]) for row in rows] == [
        ("2", 0.5, ["2", "2", "nan"]),
        ("0", 0.25, ["1", "0.5", "3"]),
        ("1", -1.0, ["−4", "−1", "1"]),
    ]
    by_mean = ranking_rows(MADE, "mean_activation", ["mean_activation"])
    assert [(row["id"], row["share"]) for row in by_mean] == [("0", 1.0), ("1", 1 / 3), ("2", 0.0)]


def test_a_layer_of_zeros_has_bars_of_no_length() -> None:
    nothing = SimpleNamespace(logit_drop=np.zeros(2), order=lambda by: [0, 1])
    assert [row["share"] for row in ranking_rows(nothing, "logit_drop", ["logit_drop"])] == [0.0, 0.0]  # type: ignore[arg-type]
