"""Which layers a command is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeVar

from hookviz.cli.console import Console
from hookviz.cli.parser import Parser
from hookviz.cli.subject import Subject
from hookviz.describe import WHOLE_NETWORK, title
from hookviz.errors import HookvizError, UnknownLayerError
from hookviz.hooks.names import LayerNames, unknown_layer
from hookviz.types import LayerInfo

Value = TypeVar("Value")

_MOST_NAMES = 5


@dataclass(frozen=True, slots=True)
class ChosenLayer:
    """A layer or operation, and whether it was named itself rather than met by a glob."""

    info: LayerInfo
    named: bool


def add_layers(parser: Parser, *, required: bool) -> None:
    """Which layers."""
    parser.add_argument(
        "--layers",
        metavar="L",
        nargs="+",
        action="extend",
        required=required,
        help="names as hookviz layers gives them, operations' too (layer1.0.add), or globs, whose * crosses dots and "
        "which stand for operations only where no layer matches" + ("" if required else "; by default all layers"),
    )


def choose_layers(subject: Subject, patterns: Sequence[str], console: Console) -> list[ChosenLayer]:
    """The layers that ran, each once, in the order asked for; what a glob met that never ran is left out with a note.

    Raises:
        UnknownLayerError: nothing has that name or matches that glob, or a layer that was named did not run.
    """
    chosen: dict[str, ChosenLayer] = {}
    for pattern in patterns:
        for info in _find(subject, "" if pattern == WHOLE_NETWORK else pattern):
            chosen.setdefault(info.name, ChosenLayer(info, named=not _is_glob(pattern)))
    silent = [one for one in chosen.values() if not one.info.calls]
    named = [title(one.info.name) for one in silent if one.named]
    if named or len(silent) == len(chosen):
        names = _listed(named or [title(one.info.name) for one in silent])
        raise UnknownLayerError(f"not called for this image: {names}; choose layers that run.")
    if silent:
        console.note(f"not called for this image, and left out: {_listed([one.info.name for one in silent])}")
    return [one for one in chosen.values() if one.info.calls]


def each(
    layers: Sequence[ChosenLayer], make: Callable[[LayerInfo], Value], console: Console
) -> Iterator[tuple[LayerInfo, Value]]:
    """What can be made of each layer; of those that a glob met, with a note in place of what cannot.

    Raises:
        HookvizError: nothing can be made of a layer that was named, or of any.
    """
    made = False
    for number, one in enumerate(layers, 1):
        console.progress(f"{title(one.info.name)}, {number} of {len(layers)}")
        try:
            value = make(one.info)
        except HookvizError as error:
            if one.named:
                raise
            console.note(f"left out: {error}")
            continue
        made = True
        yield one.info, value
    if not made:
        raise HookvizError("Nothing is left of the chosen layers; choose others.")


def _is_glob(pattern: str) -> bool:
    return any(mark in pattern for mark in "*?[")


def _listed(names: Sequence[str]) -> str:
    shown, rest = names[:_MOST_NAMES], len(names) - _MOST_NAMES
    return ", ".join(shown) + (f" and {rest} more" if rest > 0 else "")


def _find(subject: Subject, pattern: str) -> list[LayerInfo]:
    """Layers, or where there is none of that name, operations."""
    layers = {info.name: info for info in subject.layers}
    names = LayerNames(subject.model.module)
    try:
        return [layers[name] for name in names.resolve(pattern)]
    except UnknownLayerError as unknown:
        found = [info for info in subject.operations if info.name == pattern or fnmatchcase(info.name, pattern)]
        if found:
            return found
        if _is_glob(pattern):
            raise
        known = [*names.aliases, *(info.name for info in subject.operations)]
        raise unknown_layer(pattern, known, type(names.root).__name__) from unknown
