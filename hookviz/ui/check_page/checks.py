"""Checks made in the background and kept for all sessions: what was measured, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeAlias

import streamlit as st

from hookviz.models import Model, load_model
from hookviz.sanity import Inspection, Report, Thresholds
from hookviz.sanity.conclusions import Against, conclude
from hookviz.sanity.subject import subject_of
from hookviz.ui import resources
from hookviz.ui.check_page.jobs import Job, Jobs
from hookviz.ui.check_page.sources import Images
from hookviz.ui.resources import ChosenModel
from hookviz.ui.shelf import Shelf

INSPECTIONS_KEPT = 4
"""Of all sessions; each holds its network and, of uploads, the files: what other thresholds are tried on."""

REPORTS_KEPT = 32
"""Of all sessions; each takes about a megabyte."""

UNTRAINED, NOTHING = "untrained", "nothing"
"""What layers are compared with, besides a model by its name."""

Measured: TypeAlias = "tuple[str, ...]"
"""What an inspection is known by: model and images, and behind them whose it is where it was stopped early."""

ReportKey: TypeAlias = "tuple[Measured, int, str, Thresholds]"


@dataclass(frozen=True, slots=True)
class Order:
    """A check as a visitor wants it, by what everything is known by."""

    model: str
    images: str
    against: str
    thresholds: Thresholds
    visitor: str

    @property
    def measured(self) -> Measured:
        """Network and images."""
        return self.model, self.images

    @property
    def own(self) -> Measured:
        """The same of this visitor alone."""
        return *self.measured, self.visitor


class Checks:
    """What was measured and said, and what is being."""

    def __init__(self) -> None:
        self._inspections: Shelf[Inspection] = Shelf(INSPECTIONS_KEPT, lambda _: 1)
        self._reports: Shelf[Report] = Shelf(REPORTS_KEPT, lambda _: 1)
        self.inspecting = Jobs("The network could not be checked; the log has the details.")
        self.judging = Jobs("What was measured could not be judged; the log has the details.")

    def report(self, key: Hashable) -> Report | None:
        """A report, if it is there."""
        return self._reports.find(key)

    def inspection(self, order: Order) -> Inspection | None:
        """What was measured: of all images, or of those before this visitor stopped."""
        return self._inspections.find(order.measured) or self._inspections.find(order.own)

    def report_key(self, order: Order) -> ReportKey:
        """What the report that an order is about is known by: a whole one where there is one, or may come to be."""
        whole: ReportKey = (order.measured, 0, order.against, order.thresholds)
        if self._reports.find(whole) is not None or self._inspections.find(order.measured) is not None:
            return whole
        part = self._inspections.find(order.own)
        return whole if part is None else (order.own, part.done, order.against, order.thresholds)

    def start(self, order: Order, model: Model, images: Images) -> None:
        """Measure in the background, or go on where this visitor stopped."""

        def work(job: Job) -> None:
            if self._inspections.find(order.measured) is not None:  # somebody else's was the same
                return
            inspection = self._inspections.find(order.own) or Inspection(subject_of(model, None), images.items)
            job.done = inspection.done
            while not inspection.finished and job.goes_on:
                inspection.step()
                job.done = inspection.done
            if inspection.done:
                self._inspections.put(order.measured if inspection.finished else order.own, inspection)

        self.inspecting.start(order.own, len(images.items), work)

    def judge(self, key: ReportKey, inspection: Inspection, against: Callable[[], Model | None] | None) -> None:
        """Say in the background what measurements mean; ``against`` loads another network to compare layers with."""

        def work(_: Job) -> None:
            other: Against = "untrained" if against is None else against()
            self._reports.put(key, conclude(inspection, key[3], against=other))

        self.judging.start(key, 1, work)


@st.cache_resource(show_spinner=False)
def checks() -> Checks:
    """The ones of all sessions."""
    return Checks()


def loading(against: str, device: str) -> Callable[[], Model | None] | None:
    """What loads the network that layers are compared with; None for the same one untrained."""
    if against == UNTRAINED:
        return None
    if against == NOTHING:
        return lambda: None
    models = resources.models()
    key = ChosenModel(against, resources.default_weights(against), device).key
    return lambda: models.get(key, lambda: load_model(against, device=device))
