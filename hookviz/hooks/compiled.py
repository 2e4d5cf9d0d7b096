"""Running compiled networks eagerly while somebody looks.

Compiled code does not notice hooks that are added later (pytorch#117758).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_open = 0
_stance: Any = None


@contextmanager
def run_eagerly() -> Iterator[None]:
    """Let everything compiled run as the Python it was made from, until the last such block is left.

    torch's stance is one for the process, so blocks of several threads are counted. Nothing is done, and nothing
    imported, where nothing has been compiled.
    """
    if "torch._dynamo" not in sys.modules:
        yield
        return
    _begin()
    try:
        yield
    finally:
        _end()


def _begin() -> None:
    import torch.compiler  # loaded already: see above

    global _open, _stance  # noqa: PLW0603  # mirrors a state that torch keeps for the process
    with _lock:
        if _open == 0:
            _stance = torch.compiler.set_stance("force_eager")
            _stance.__enter__()
        _open += 1


def _end() -> None:
    global _open, _stance  # noqa: PLW0603  # as above
    with _lock:
        _open -= 1
        if _open == 0:
            _stance.__exit__(None, None, None)
            _stance = None
