"""Holding freed memory to its bound: glibc keeps it in a heap per thread, and every run of the page is a thread."""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path

from hookviz.hooks.warm_memory import BYTES_KEPT_WARM, keep_memory_warm

_SECONDS = 2.0


def hold_freed_memory() -> None:
    """As long as the process lives, hold its freed memory to ``BYTES_KEPT_WARM``, not to that much per thread.

    What the kernel says is read every two seconds; a forward may take more meanwhile. Returns at once where
    ``keep_memory_warm`` leaves the allocator alone.
    """
    if not keep_memory_warm():
        return
    after_giving = _give_all()
    while True:
        time.sleep(_SECONDS)
        after_giving = give_back(after_giving)


def give_back(after_giving: int) -> int:
    """Give freed memory back if more than ``BYTES_KEPT_WARM`` came since that was done last.

    Args:
        after_giving: the bytes that were resident after memory was given back, or the fewest since.

    Returns:
        the same for the next time.
    """
    now = resident_bytes()
    return _give_all() if now > after_giving + BYTES_KEPT_WARM else min(after_giving, now)


def _give_all() -> int:
    ctypes.CDLL(None).malloc_trim(0)
    return resident_bytes()


def resident_bytes() -> int:
    """The memory that the process has from the kernel, as Linux tells it."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
