"""Keeping the memory of one recording for the next.

A plain forward uses the same memory again and again. One whose outputs are kept takes fresh memory for each, which the
kernel provides page by page: on resnet18 that takes up to a third of the forward's time. glibc gives freed memory back
to the kernel at once unless it is told to wait.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache

BYTES_KEPT_WARM = 256 * 2**20
"""Freed memory that the process may hold on to: about one recording."""

_LARGEST_ON_HEAP = 32 * 2**20
"""What glibc takes at most for blocks that it cuts from its heap; larger ones come from the kernel, each by itself."""

# Numbers of mallopt's parameters in glibc's malloc.h.
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3


@cache
def keep_memory_warm() -> bool:
    """Let glibc keep up to ``BYTES_KEPT_WARM`` of freed memory, once per process; says whether it does.

    Nothing happens where another allocator is at work, or where somebody has tuned glibc by its environment variables.
    """
    if any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ):
        return False
    try:
        libc = ctypes.CDLL(None)
        libc.gnu_get_libc_version  # noqa: B018  # only glibc has it, and only there the numbers mean this
        return bool(libc.mallopt(_MMAP_THRESHOLD, _LARGEST_ON_HEAP) and libc.mallopt(_TRIM_THRESHOLD, BYTES_KEPT_WARM))
    except (AttributeError, OSError, TypeError):  # TypeError: Windows has no library without a name
        return False
