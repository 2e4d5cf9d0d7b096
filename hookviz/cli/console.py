"""What a command says, and where: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Callable, Mapping
from typing import Any

from hookviz.errors import HookvizError

_NARROWEST, _WIDEST = 40, 110  # longer lines are hard to read
_NEXT_LINE = "\n"
_SAME_LINE = "\r"


class Console:
    """The two streams of one command.

    ``quiet`` leaves notes and progress out; ``progress`` shows progress also where stderr is no terminal. Results keep
    going to the stdout there was at the beginning, so that networks that print can be sent elsewhere.
    """

    def __init__(self, *, quiet: bool = False, progress: bool = False) -> None:
        self._results = sys.stdout
        self._quiet = quiet
        self._terminal = sys.stderr is not None and sys.stderr.isatty()
        self._shows_progress = not quiet and (progress or self._terminal)

    @property
    def width(self) -> int | None:
        """How many letters a line of results has room for; None where they go to no terminal."""
        if self._results is None or not self._results.isatty():
            return None
        return max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size().columns))

    def result(self, text: str) -> None:
        """Write one result, whole lines.

        Raises:
            BrokenPipeError: the reader has seen enough.
            HookvizError: it cannot be written.
        """
        if self._results is None:  # the shell closed it: >&-
            return
        try:
            print(_printable(text, self._results.encoding), file=self._results, flush=True)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise HookvizError(f"the results could not be written: {error.strerror}.") from error

    def json(self, value: object) -> None:
        """Write a result as JSON that every reader takes: numbers that are not finite become null."""
        self.result(strict_json(value))

    def error(self, text: str) -> None:
        """Say what went wrong."""
        _say(f"hookviz: {_one_line(text)}")

    def note(self, text: str) -> None:
        """Say something worth knowing."""
        if text and not self._quiet:
            _say(f"hookviz: {_one_line(text)}")

    def progress(self, text: str) -> None:
        """Say what is being done now."""
        if self._shows_progress:
            _say(f"hookviz: {text} …")

    def download(self, name: str) -> Callable[[int, int], None]:
        """A function to be told the bytes done and the bytes in all, 0 where nobody knows."""

        def share(done: int, total: int) -> str:
            return f"{done / 2**20:.0f} of {total / 2**20:.0f} MB" if total else f"{done / 2**20:.0f} MB"

        return self._counting(lambda done, total: f"downloading the weights of {name}: {share(done, total)}")

    def images(self) -> Callable[[int, int], None]:
        """A function to be told how many images are done and how many there are."""
        return self._counting(lambda done, total: f"{done:,} of {total:,} images")

    def _counting(self, words: Callable[[int, int], str]) -> Callable[[int, int], None]:
        """One line that changes on a terminal; elsewhere a line for each tenth, or for 10 MB where nobody knows."""
        last_tenth = -1

        def tell(done: int, total: int) -> None:
            nonlocal last_tenth
            tenth = 10 * done // total if total else done // (10 * 2**20)
            if not self._shows_progress or (tenth == last_tenth and not self._terminal):
                return
            last_tenth = tenth
            complete = not self._terminal or (total and done >= total)
            _say(f"hookviz: {words(done, total)}", _NEXT_LINE if complete else _SAME_LINE)

        return tell


def strict_json(value: object) -> str:
    """JSON that every reader takes: numbers that are not finite become null."""
    return json.dumps(_strict(value), indent=2, allow_nan=False)


def _say(text: str, end: str = _NEXT_LINE) -> None:
    if sys.stderr is not None:  # print would go to stdout
        print(text, file=sys.stderr, end=end, flush=True)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line + ("" if line.endswith((".", "!", "?")) else ".")


def _printable(text: str, encoding: str | None) -> str:
    """The text with a question mark for what the terminal's encoding lacks."""
    encoding = encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


def _strict(value: object) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _strict(one) for key, one in value.items()}
    return [_strict(one) for one in value] if isinstance(value, list | tuple) else value
