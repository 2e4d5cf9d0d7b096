"""The course of a check: what is said on the way, and how it is taken up again after an interruption."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from hookviz.cli.console import Console
from hookviz.cli.patient_interrupt import PatientInterrupt
from hookviz.cli.progress_place import progress_path
from hookviz.cli.subject import SAMPLE, STDIN
from hookviz.sanity import Item


class Course:
    """A block in which a check runs; ``path`` is its progress file, None where nothing could be taken up again."""

    def __init__(self, path: Path | None, console: Console) -> None:
        self.path = path
        self._console = console
        self._images = console.images()
        self._interrupt = PatientInterrupt()
        self._begun = False

    @classmethod
    def of(cls, chosen: argparse.Namespace, items: Sequence[Item], console: Console) -> Course:
        """As the words say; several files make it worth while."""
        path = _path(chosen, console) if len(items) > 1 and all(item.stamp for item in items) else None
        if path is not None and chosen.fresh:
            path.unlink(missing_ok=True)
        return cls(path, console)

    def tell(self, done: int, total: int) -> None:
        """Say how far it is; this is where Ctrl-C ends it."""
        self._interrupt.at_image(done, total)
        if not self._begun and done:
            self._console.note(f"going on after {done:,} of {total:,} images")
        elif self._begun:
            self._images(done, total)
        self._begun = True

    def __enter__(self) -> Course:
        self._interrupt.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._interrupt.__exit__()
        if kind is KeyboardInterrupt and self.path is not None and self.path.exists():
            self._console.note("interrupted; the same command goes on from there")


def _path(chosen: argparse.Namespace, console: Console) -> Path | None:
    """One file for each set of words, wherever they are typed."""
    words = [chosen.model, chosen.weights, chosen.class_names, chosen.device, chosen.labels, chosen.prepare]
    try:
        return progress_path([list(map(_whole, words)), list(map(_whole, chosen.images))])
    except OSError as error:
        console.note(f"if this is interrupted, it begins anew, since nothing can be kept ({error.strerror or error})")
        return None


def _whole(word: str | None) -> str | None:
    """A path as it is from everywhere."""
    if word is None or word == STDIN or word.startswith(SAMPLE):
        return word
    return str(Path(word).resolve()) if Path(word).exists() else word
