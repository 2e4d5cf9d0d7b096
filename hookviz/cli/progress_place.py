"""Where a check that was broken off has its progress."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

_DAYS = 30
"""How long progress is kept that nobody takes up."""


def progress_path(about: object, environment: Mapping[str, str] = os.environ) -> Path:
    """The file for a check; ``about`` is what makes it this one, in what JSON has.

    Raises:
        OSError: there is no folder to write into.
    """
    folder = cache_folder(environment) / "hookviz" / "checks"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        _forget_old(folder)
    return folder / f"{hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32]}.npz"


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The user's folder for what can be made again.

    Raises:
        OSError: nobody says where the user's folders are.
    """
    chosen = environment.get("XDG_CACHE_HOME", "")
    if Path(chosen).is_absolute():  # others are invalid by the specification
        return Path(chosen)
    if sys.platform == "win32" and environment.get("LOCALAPPDATA"):
        return Path(environment["LOCALAPPDATA"])
    try:
        home = Path.home()
    except RuntimeError as error:
        raise OSError(str(error)) from error
    return home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"


def _forget_old(folder: Path) -> None:
    oldest = time.time() - _DAYS * 24 * 60 * 60
    for path in folder.iterdir():
        with contextlib.suppress(OSError):  # another check may have removed it
            if path.stat().st_mtime < oldest:
                path.unlink()
