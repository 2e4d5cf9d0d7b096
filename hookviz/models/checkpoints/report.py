from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from hookviz.errors import ModelError

Shape: TypeAlias = tuple[int, ...]

_SHOWN = 3


class CheckpointError(ModelError):
    """A checkpoint that cannot be read or does not fit; ``report`` has the comparison where one was made."""

    def __init__(self, sentence: str, report: CheckpointReport | None = None) -> None:
        super().__init__(sentence)
        self.report = report


def subject(name: str) -> str:
    """What a sentence about a file begins with."""
    return f"The checkpoint {name}" if name else "The checkpoint"


@dataclass(frozen=True, slots=True)
class CheckpointReport:
    """How a checkpoint's values compare with those of a network.

    Names are the network's own, those of ``unexpected`` the file's. ``wrong_shape`` and ``wrong_dtype`` have for each
    name what the network expects and what was found. ``renamed`` is what lay around the values: wrappers they were
    under (``"state_dict"``), prefixes taken off their names (``"module."``). ``ignored`` are entries of the file that
    were not looked at. ``random_layers`` have no values in the file; where the checkpoint fits, they are at a seeded
    random start. ``num_classes`` is the size of the file's classification head, ``head`` that layer's name.

    ``fits`` is whether :func:`load_checkpoint` takes it: every value of the network is there in its shape, except that
    the head may have another number of classes or be absent altogether, and counters that no prediction uses may be
    missing.
    """

    matched: tuple[str, ...]
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    wrong_shape: tuple[tuple[str, Shape, Shape], ...]
    wrong_dtype: tuple[tuple[str, str, str], ...]
    renamed: tuple[str, ...]
    ignored: tuple[str, ...]
    random_layers: tuple[str, ...]
    head: str
    num_classes: int | None
    fits: bool
    name: str = ""

    @property
    def verdict(self) -> str:
        """One sentence for a reader."""
        if self.fits:
            return f"{subject(self.name)} fits: {'; '.join(self._what_was_done())}."
        if not self.matched:
            return f"{subject(self.name)} is of another network: no name and shape in it is one of this network's."
        return f"{subject(self.name)} does not fit: {'; '.join(self._what_differs())}."

    def _what_was_done(self) -> list[str]:
        done = [_counted(len(self.matched), "value") + " with the network's names and shapes"]
        if self.renamed:
            done[0] += f", after taking off {_first(map(repr, self.renamed))}"
        if self.wrong_shape:
            done.append(f"the head {self.head} gets {self.num_classes} classes instead of {self.wrong_shape[0][1][0]}")
        if self.random_layers:
            done.append(f"{_first(self.random_layers)} stays at a random start, since the file has no values for it")
        elif self.missing:
            done.append(f"{_counted(len(self.missing), 'counter')} not in the file, which changes no prediction")
        if self.unexpected:
            done.append(f"{_counted(len(self.unexpected), 'other tensor')} not used ({_first(self.unexpected)})")
        if self.ignored:
            done.append(f"left aside: {_first(self.ignored)}")
        return done

    def _what_differs(self) -> list[str]:
        shapes = [f"{name} is {found} instead of {expected}" for name, expected, found in self.wrong_shape]
        dtypes = [f"{name} is {found} instead of {expected}" for name, expected, found in self.wrong_dtype]
        kinds = [
            ("missing", self.missing),
            ("unexpected", self.unexpected),
            ("of another shape", shapes),
            ("of another kind of number", dtypes),
        ]
        differs = [f"{len(names)} {what} ({_first(names)})" for what, names in kinds if names]
        if self.random_layers:
            differs.append(f"{_first(self.random_layers)} would stay at a random start")
        return differs


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _first(names: Iterable[str]) -> str:
    all_names = list(names)
    return ", ".join(all_names[:_SHOWN]) + (", ..." if len(all_names) > _SHOWN else "")
