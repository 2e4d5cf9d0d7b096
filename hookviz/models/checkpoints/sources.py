"""From what a caller hands over to a seekable binary stream, with the name to call it by."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, cast

from hookviz.models.checkpoints.report import CheckpointError, subject

CheckpointSource: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO
"""A path, the bytes of a file, or a file opened in binary mode."""

MAX_BYTES = 4 * 2**30
"""The largest checkpoint that is opened; torchvision's largest classifier has 2.6 GB."""

_CHUNK = 2**20


@dataclass(frozen=True)
class OpenCheckpoint:
    """A stream at position 0, its size in bytes, and what sentences call the file, ``""`` where it has no name."""

    stream: BinaryIO
    size: int
    name: str


@contextmanager
def open_checkpoint(source: CheckpointSource) -> Iterator[OpenCheckpoint]:
    """The source as a stream; a caller's own file stays open and where it was.

    Raises:
        CheckpointError: there is nothing to read, or more than 4 GB of it.
    """
    name = _name(source)
    if isinstance(source, str | os.PathLike):
        with _open_path(Path(source).expanduser()) as stream:
            yield _measured(stream, name)
    elif isinstance(source, bytes | bytearray | memoryview):
        yield _measured(io.BytesIO(source), name)
    else:
        with _borrowed(source, name) as stream:
            yield _measured(stream, name)


def _name(source: Any) -> str:
    given = source if isinstance(source, str | os.PathLike) else getattr(source, "name", "")
    return Path(given).name if isinstance(given, str | os.PathLike) else ""


def _open_path(path: Path) -> BinaryIO:
    try:
        if path.exists() and not path.is_file():  # opening a pipe would wait for ever
            raise CheckpointError(f"{str(path)!r} is not a file; give the path of a checkpoint.")
        return path.open("rb")
    except FileNotFoundError as error:
        raise CheckpointError(f"There is no checkpoint {str(path)!r}; check the path.") from error
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        raise CheckpointError(f"The checkpoint {str(path)!r} cannot be opened; check its permissions.") from error


@contextmanager
def _borrowed(source: Any, name: str) -> Iterator[BinaryIO]:
    if isinstance(source, io.TextIOBase) or not hasattr(source, "read"):
        raise CheckpointError(
            f"A {type(source).__name__} is not a checkpoint; "
            "give a path, the bytes of a file, or a file opened in binary mode."
        )
    try:
        position = source.tell()
        source.seek(0)
    except (AttributeError, OSError):  # a pipe
        yield io.BytesIO(_read_bounded(source))
        return
    except ValueError as error:
        raise CheckpointError(f"{subject(name)} is closed; open it again in binary mode.") from error
    try:
        yield cast("BinaryIO", source)
    finally:
        source.seek(position)


def _read_bounded(source: Any) -> bytes:
    contents = bytearray()
    while len(contents) <= MAX_BYTES and (chunk := source.read(_CHUNK)):
        contents += chunk
    return bytes(contents)


def _measured(stream: BinaryIO, name: str) -> OpenCheckpoint:
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    if size == 0:
        raise CheckpointError(f"{subject(name)} is empty (0 bytes); copy or download it again.")
    if size > MAX_BYTES:
        raise CheckpointError(
            f"{subject(name)} has {size / 2**30:.1f} GB, more than {MAX_BYTES // 2**30} GB; "
            "save the model's state_dict() alone, without its optimizer."
        )
    return OpenCheckpoint(stream, size, name)
