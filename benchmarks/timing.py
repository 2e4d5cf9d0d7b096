"""Timing two ways of doing one thing so that a busy machine slows both alike."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Ratio:
    """Seconds of the subject and of the baseline (medians), and the median of the pairwise subject / baseline."""

    subject: float
    baseline: float
    ratio: float

    @property
    def speedup(self) -> float:
        """How many times faster the subject is than the baseline."""
        return 1 / self.ratio

    def line(self, label: str) -> str:
        """One aligned line to print: label, both medians in milliseconds, subject / baseline, and its inverse."""
        times = f"{self.subject * 1e3:9.3f} ms against {self.baseline * 1e3:9.3f} ms"
        return f"{label:<48} {times}   ratio {self.ratio:8.4f}   ({self.speedup:.3g} times faster)"


def ratio(subject: Callable[[], object], baseline: Callable[[], object], *, pairs: int = 15, warmup: int = 2) -> Ratio:
    """Time subject and baseline in alternating pairs.

    Args:
        subject: What is measured.
        baseline: What it is measured against.
        pairs: How many (subject, baseline) pairs to time; which of the two goes first alternates as well.
        warmup: How many untimed calls of each come before.

    Returns:
        The medians, and the median over pairs of subject / baseline.
    """
    for _ in range(warmup):
        subject()
        baseline()
    timed = [_pair(subject, baseline, swapped=bool(index % 2)) for index in range(pairs)]
    subjects, baselines = zip(*timed, strict=True)
    quotients = [first / second for first, second in timed]
    return Ratio(statistics.median(subjects), statistics.median(baselines), statistics.median(quotients))


def seconds(call: Callable[[], object]) -> float:
    """Wall-clock seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _pair(subject: Callable[[], object], baseline: Callable[[], object], *, swapped: bool) -> tuple[float, float]:
    if swapped:
        second = seconds(baseline)
        return seconds(subject), second
    return seconds(subject), seconds(baseline)
