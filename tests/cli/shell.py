"""The command line as a shell runs it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@contextmanager
def started(command: list[str], **settings: Any) -> Iterator[subprocess.Popen[Any]]:
    """A process that is gone after the block, whatever happens in it."""
    with subprocess.Popen(command, **settings) as process:
        try:
            yield process
        finally:
            process.kill()


def python_m_hookviz(*words: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    """Run one command in a process of its own, in the source tree unless told otherwise."""
    given: dict[str, Any] = {"cwd": ROOT, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.run([sys.executable, "-m", "hookviz", *words], check=False, timeout=120, **given | settings)
