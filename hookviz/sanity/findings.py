"""What a check says: one finding after another, each with its place, its size, a reason and a way out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning", "note"]
"""``error``: the network computes nonsense; ``warning``: most likely not what was meant; ``note``: worth knowing."""

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""The worst first."""

Area: TypeAlias = Literal["input", "layers", "weights", "answer"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found, in words that stand alone.

    ``kind`` is a short name for programs (``"dead_layer"``). ``layers`` are the layers it speaks of in the order of the
    run, the one to look at first; empty where it speaks of the input or of the whole network. ``what`` says what, where
    and how much; ``why`` why that matters; ``advice`` what to try. ``amount`` is the measured number and ``threshold``
    the one it was held against, None where there is no such number. ``channels`` are those of the first layer that it
    speaks of, at most the first hundred.
    """

    severity: Severity
    area: Area
    kind: str
    what: str
    why: str
    advice: str
    layers: tuple[str, ...] = ()
    amount: float | None = None
    threshold: float | None = None
    channels: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.severity}: {self.what}"


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Errors before warnings before notes, otherwise as they come."""
    return tuple(sorted(findings, key=lambda one: SEVERITIES.index(one.severity)))


def at_least(findings: Iterable[Finding], severity: Severity) -> list[Finding]:
    """Those that are as bad as ``severity``, or worse."""
    return [one for one in findings if SEVERITIES.index(one.severity) <= SEVERITIES.index(severity)]


def named(layers: Iterable[str], *, most: int = 3) -> str:
    """Layers in a sentence: the first few by name, and how many more there are."""
    names = [f"`{name}`" if name else "the network itself" for name in layers]
    more = len(names) - most
    if more > 0:
        return f"{', '.join(names[:most])} and {more} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def at_start(layer: str) -> str:
    """A layer as a sentence begins with it."""
    words = named([layer])
    return words[0].upper() + words[1:]


def counted(number: int, word: str, plural: str = "") -> str:
    """``1 image``, ``2,000 images``."""
    return f"{number:,} {word if number == 1 else plural or word + 's'}"


def percent(share: float) -> str:
    """A share as a reader takes it in: whole percent, but neither 0 % nor 100 % for what is not."""
    if 0 < share < 0.005:
        return "under 1 %"
    if 0.995 <= share < 1:
        return "over 99 %"
    return f"{share:.0%}".replace("%", " %")
