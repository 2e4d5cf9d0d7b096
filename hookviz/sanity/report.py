"""What a check found, as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hookviz.sanity.answers import Answer, Steadiness
from hookviz.sanity.findings import SEVERITIES, Finding, Severity, at_least, counted
from hookviz.sanity.identity import Environment, NetworkIdentity
from hookviz.sanity.input_trials import InputTrial
from hookviz.sanity.likeness import LayerLikeness
from hookviz.sanity.thresholds import Thresholds
from hookviz.types import Summary


@dataclass(frozen=True, slots=True)
class CheckedImage:
    """An image that was read; ``sha256`` is of its file, pixels or values."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An image that could not be used, and why, in one sentence."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class LayerRow:
    """One tensor that one call of a layer returned, over all images.

    ``call`` counts from 1. The counts of channels are None where the axes name none, or a channel has too few values to
    say so. ``gain`` is the root mean square of what goes out over that of what comes in, for layers with weights.
    """

    layer: str
    class_name: str
    call: int
    part: str
    shape: tuple[int, ...]
    summary: Summary
    channels: int | None = None
    dead: int | None = None
    constant: int | None = None
    duplicated: int | None = None
    gain: float | None = None


@dataclass(frozen=True, slots=True)
class Compared:
    """The layers beside those of another network."""

    other: str
    layers: tuple[LayerLikeness, ...]


@dataclass(frozen=True)
class Report:
    """The answer to "is this network, and the way I feed it, all right?".

    ``findings`` are the worst first. ``images`` were checked, ``unreadable`` ones were not. ``layers`` are in the order
    of the run. ``input_trials`` has the first image fed in the usual wrong ways beside the right one. ``answers`` has
    one entry for each image of a classifier, ``steadiness`` what small changes do to it. ``compared`` are the layers
    beside those of the same network untrained, or of the one that was asked for. ``complete`` is False where the check
    was stopped early.
    """

    network: NetworkIdentity
    environment: Environment
    findings: tuple[Finding, ...]
    images: tuple[CheckedImage, ...]
    unreadable: tuple[Unreadable, ...]
    layers: tuple[LayerRow, ...]
    categories: tuple[str, ...] = ()
    answers: tuple[Answer, ...] = ()
    steadiness: tuple[Steadiness, ...] = ()
    input_trials: tuple[InputTrial, ...] = ()
    compared: Compared | None = None
    thresholds: Thresholds = field(default_factory=Thresholds)
    complete: bool = True

    @property
    def worst(self) -> Severity | None:
        """How bad the worst finding is; None where there is none."""
        return self.findings[0].severity if self.findings else None

    def at_least(self, severity: Severity) -> list[Finding]:
        """The findings that are as bad as that, or worse."""
        return at_least(self.findings, severity)

    @property
    def verdict(self) -> str:
        """One sentence."""
        counts = {one: sum(found.severity == one for found in self.findings) for one in SEVERITIES}
        checked = counted(len(self.images), "image")
        if not (counts["error"] or counts["warning"]):
            if not self.images:
                return f"{self.network.name} on 0 images: its weights show nothing wrong, and more cannot be told."
            notes = f" ({counted(counts['note'], 'note')})" if counts["note"] else ""
            return f"Nothing is wrong with {self.network.name}, as far as {checked} can tell{notes}."
        said = [counted(counts[one], one) for one in SEVERITIES if counts[one]]
        return f"{self.network.name} on {checked}: {', '.join(said)}."

    def __str__(self) -> str:
        lines = [self.verdict, *(f"  {one}" for one in self.findings)]
        if self.unreadable:
            lines += [f"{counted(len(self.unreadable), 'image')} could not be read:"]
            lines += [f"  {one.name}: {one.reason}" for one in self.unreadable]
        return "\n".join(lines)

    def to_html(self) -> str:
        """The report as one HTML file that needs nothing else; the same report gives the same text."""
        from hookviz.sanity_report import (
            report_html,
        )  # the page stands on the report, not it on the page

        return report_html(self)

    def save(self, path: str | Path) -> None:
        """Write the report as an HTML file, for a browser or for paper."""
        Path(path).write_text(self.to_html(), "utf-8")

    def _repr_html_(self) -> str:
        """The verdict, what was found, a few layers and one figure, as a notebook shows it."""
        from hookviz.sanity_report import report_card  # as above

        return report_card(self)

    def as_dict(self) -> dict[str, Any]:
        """Everything but the pictures in what JSON has; arrays become lists."""
        plain: dict[str, Any] = _plain(asdict(self))
        for trial in plain["input_trials"]:
            del trial["pixels"]
        return {"verdict": self.verdict, "worst": self.worst} | plain


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return value
