"""Work in the background, a job for each key: begun once, stopped by whoever asked for it, ended when nobody asks."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from hookviz.errors import HookvizError

AT_A_TIME = 2
"""How many of one kind work at the same time; others wait."""

PATIENCE = 20.0
"""Seconds after which a job ends that no page has asked about: the tab was closed, or shows something else."""

_log = logging.getLogger("hookviz")


@dataclass(eq=False)
class Job:
    """How far some work is, whether it is to stop, and why it failed, if it did.

    ``waits`` says that others have their turn.
    """

    total: int
    done: int = 0
    waits: bool = True
    stopping: bool = False
    ended: bool = False
    failure: str = ""
    began: float = field(default_factory=time.monotonic)
    asked: float = field(default_factory=time.monotonic)

    @property
    def goes_on(self) -> bool:
        """Whether there is still somebody who wants the rest."""
        return not self.stopping and time.monotonic() - self.asked <= PATIENCE


Work = Callable[[Job], None]
"""Does it, and looks at ``goes_on`` now and then."""


class Jobs:
    """Those that are being done, each in a thread of its own, and those that failed."""

    def __init__(self, failed: str) -> None:
        self._failed = failed
        self._jobs: dict[Hashable, Job] = {}
        self._lock = threading.Lock()
        self._turn = threading.Semaphore(AT_A_TIME)

    def start(self, key: Hashable, total: int, work: Work) -> None:
        """Begin a job, if it is not going on already."""
        with self._lock:
            self._jobs = {one: job for one, job in self._jobs.items() if not job.ended or job.goes_on}
            job = self._jobs.get(key)
            if job is not None and not job.ended and not job.stopping:
                return
            job = self._jobs[key] = Job(total)
        threading.Thread(target=self._do, args=(key, job, work), daemon=True, name="check").start()

    def job(self, key: Hashable) -> Job | None:
        """The job of a key; asking keeps it going."""
        with self._lock:
            job = self._jobs.get(key)
            if job is not None:
                job.asked = time.monotonic()
            return job

    def stop(self, key: Hashable) -> None:
        """Let a job end with the step that it is at."""
        with self._lock:
            if key in self._jobs:
                self._jobs[key].stopping = True

    def forget_failure(self, key: Hashable) -> None:
        """Let a job that failed be begun again."""
        with self._lock:
            if key in self._jobs and self._jobs[key].ended:
                del self._jobs[key]

    def _do(self, key: Hashable, job: Job, work: Work) -> None:
        try:
            with self._turn:
                job.waits, job.began = False, time.monotonic()
                work(job)
        except HookvizError as error:
            job.failure = str(error)
        except Exception:  # noqa: BLE001  # whatever it is, the reader gets a sentence and the log the traceback
            _log.exception("a job of the page Check failed")
            job.failure = self._failed
        finally:
            with self._lock:
                job.ended = True
                if not job.failure and self._jobs.get(key) is job:
                    del self._jobs[key]
