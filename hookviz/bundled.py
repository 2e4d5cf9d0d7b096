"""Files that travel with hookviz: sample images and small trained weights."""

from __future__ import annotations

from pathlib import Path

from hookviz.errors import HookvizError

_PACKAGE = Path(__file__).parent
# A wheel carries the files inside the package; the source tree keeps them at its top (see pyproject's package-dir).
_FOLDERS = (_PACKAGE / "assets", _PACKAGE.parent / "assets")


def bundled_file(name: str) -> Path:
    """The path of a bundled file, such as ``"grace_hopper.jpg"``.

    Raises:
        HookvizError: hookviz was installed without that file.
    """
    for folder in _FOLDERS:
        if (path := folder / name).is_file():
            return path
    raise HookvizError(f"The bundled file {name!r} is missing; reinstall hookviz to get it back.")
