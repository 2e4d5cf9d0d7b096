"""Rankings of layers' channels, made in the background, so that the page can be used meanwhile, and kept for all."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TypeAlias

import streamlit as st

from hookviz.errors import HookvizError, ModelError
from hookviz.hooks import ChannelRanking, rank_channels
from hookviz.types import Prediction
from hookviz.ui import resources
from hookviz.ui.shelf import Shelf
from hookviz.ui.shown_network import ShownNetwork
from hookviz.ui.switches import EditPlace

RANKINGS_KEPT = 256
"""Of all sessions; each has a few numbers for every channel."""

AT_A_TIME = 2
"""How many are made at the same time; others wait."""

PATIENCE = 20.0
"""Seconds after which a ranking ends that no page has asked about: the tab was closed, or shows something else."""

Report: TypeAlias = Callable[[int, int], object]
Make: TypeAlias = Callable[[Report], ChannelRanking]

_log = logging.getLogger("hookviz")


class _LeftError(Exception):
    """Nobody waits for it any more."""


@dataclass(eq=False)
class Job:
    """A ranking that is being made: how far it is, who waits for it, and why it failed, if it did."""

    done: int = 0
    waiting: int = 0
    ended: bool = False
    failure: str = ""
    began: float = field(default_factory=time.monotonic)
    asked: float = field(default_factory=time.monotonic)

    def report(self, done: int, _total: int) -> None:
        """Note how far it is, and end it where nobody waits."""
        self.done = done
        if self.waiting < 1 or time.monotonic() - self.asked > PATIENCE:
            raise _LeftError


class Rankings:
    """Rankings by key: those that are there, and those being made, each in a thread of its own."""

    def __init__(self) -> None:
        self._made: Shelf[ChannelRanking] = Shelf(RANKINGS_KEPT, lambda _: 1)
        self._jobs: dict[Hashable, Job] = {}
        self._lock = threading.Lock()
        self._turn = threading.Semaphore(AT_A_TIME)

    def find(self, key: Hashable) -> ChannelRanking | None:
        """The ranking, if it is there."""
        return self._made.find(key)

    def start(self, key: Hashable, make: Make) -> None:
        """Begin to make a ranking, or wait for the one that is being made."""
        with self._lock:
            job = self._jobs.get(key)
            begins = job is None or job.ended or job.waiting < 1
            if job is None or begins:
                job = self._jobs[key] = Job()
            job.waiting += 1
        if begins:
            threading.Thread(target=self._work, args=(key, job, make), daemon=True, name="ranking").start()

    def job(self, key: Hashable) -> Job | None:
        """How far a ranking is; asking keeps it going."""
        with self._lock:
            job = self._jobs.get(key)
            if job is not None:
                job.asked = time.monotonic()
            return job

    def leave(self, key: Hashable) -> None:
        """Wait for it no longer; where nobody else does, it ends with the forward that it is at."""
        with self._lock:
            if key in self._jobs:
                self._jobs[key].waiting -= 1

    def _work(self, key: Hashable, job: Job, make: Make) -> None:
        try:
            with self._turn:
                job.report(0, 0)
                job.began = time.monotonic()
                self._made.put(key, make(job.report))
        except _LeftError:
            pass
        except HookvizError as error:
            job.failure = str(error)
        except Exception:  # noqa: BLE001  # whatever it is, the reader gets a sentence and the log the traceback
            _log.exception("channels could not be ranked")
            job.failure = "The channels could not be ranked; the log has the details."
        finally:
            with self._lock:
                job.ended = True
                if not job.failure and self._jobs.get(key) is job:
                    del self._jobs[key]


@st.cache_resource(show_spinner=False)
def rankings() -> Rankings:
    """The ones of all sessions."""
    return Rankings()


def ranking_of(network: ShownNetwork, place: EditPlace, target: int) -> Make:
    """What makes the ranking of a place's channels for a class; it holds the network until it is done."""
    model = network.model()
    batch = network.batch(model)

    def make(report: Report) -> ChannelRanking:
        return rank_channels(
            model.module,
            model.arguments(batch),
            place.layer,
            target=target,
            call=place.call,
            path=place.path,
            axis=place.axis,
            on_progress=report,
        )

    return make


def probable_classes(network: ShownNetwork) -> tuple[Prediction, ...]:
    """The five most probable classes; none where the network names no class."""
    model = network.model()
    try:
        result = resources.get_result(network.key, model, network.batch(model))
    except ModelError:
        return ()
    return result if isinstance(result, tuple) else ()
