"""Files that a command writes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from hookviz.errors import HookvizError

SUFFIXES = (".png", ".svg", ".pdf", ".npz")


class OutputError(HookvizError):
    """A file that cannot be written."""


@dataclass(frozen=True, slots=True)
class OutputFile:
    """Where pictures, values or reports go; what they become is said by the suffix, one of ``suffixes``, or any.

    Raises:
        OutputError: none of the suffixes, or no folder to write into.
    """

    path: Path
    suffixes: tuple[str, ...] = SUFFIXES

    def __post_init__(self) -> None:
        if self.suffixes and self.suffix not in self.suffixes:
            raise OutputError(
                f"{str(self.path)!r} is no file to write; let its name end in {', '.join(self.suffixes)}."
            )
        if not self.path.parent.is_dir():
            raise OutputError(f"There is no folder {str(self.path.parent)!r}; make it first, or choose another.")
        if self.path.is_dir():
            raise OutputError(f"{str(self.path)!r} is a folder; give the name of a file.")

    @property
    def suffix(self) -> str:
        """In lower case."""
        return self.path.suffix.lower()

    def for_layer(self, name: str) -> OutputFile:
        """The file of one layer among several: ``out.conv1.png`` beside ``out.png``."""
        layer = (name or "network").replace("/", "_").replace(os.sep, "_")
        return OutputFile(self.path.with_name(f"{self.path.stem}.{layer}{self.path.suffix}"), self.suffixes)

    def write(self, content: bytes) -> None:
        """Write the file, over one that is there.

        Raises:
            OutputError: it cannot be written, or not whole.
        """
        try:
            self.path.write_bytes(content)
        except OSError as error:
            raise OutputError(
                f"{str(self.path)!r} could not be written ({error.strerror or error}); choose another place."
            ) from error
