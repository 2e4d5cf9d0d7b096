"""Ctrl-C that lets the image in hand be finished."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class PatientInterrupt:
    """Inside the block, Ctrl-C ends at the next image, where what was done can be kept; a second one ends at once.

    Before the first image and after the last one it does not wait.
    """

    def __init__(self) -> None:
        self._asked = False
        self._waits = False
        self._before: Any = None

    def __enter__(self) -> PatientInterrupt:
        usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # nohup and the like ignore it
        if usual and threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._interrupted)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def at_image(self, done: int, total: int) -> None:
        """Say that an image is finished, or that the first one begins.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed meanwhile.
        """
        if self._asked:
            raise KeyboardInterrupt
        self._waits = done < total

    def _interrupted(self, _: int, __: FrameType | None) -> None:
        if self._asked or not self._waits:
            raise KeyboardInterrupt
        self._asked = True
