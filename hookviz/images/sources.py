"""From what a caller hands over to a binary stream of our own, at position 0."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from hookviz.errors import ImageError

ImageSource: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO
"""A path, the bytes of a file, or a file opened in binary mode."""

MAX_BYTES = 256 * 2**20
_CHUNK = 2**20


def open_source(source: ImageSource) -> BinaryIO:
    """A seekable stream over the source's bytes; closing it leaves the caller's own file open and where it was.

    Raises:
        ImageError: there is nothing to read, or more than 256 MB of it.
    """
    stream = _stream(source)
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    if 0 < size <= MAX_BYTES:
        return stream
    stream.close()
    if size == 0:
        raise ImageError("This file is empty (0 bytes); choose it again, or save it anew.")
    raise ImageError(f"This file is larger than {MAX_BYTES // 2**20} MB; save a smaller copy of the image.")


def _stream(source: Any) -> BinaryIO:
    if isinstance(source, str | os.PathLike):
        return _open_path(source)
    if isinstance(source, bytes | bytearray | memoryview):
        return _bytes_stream(source)
    if hasattr(source, "getvalue") or hasattr(source, "read"):
        return _bytes_stream(_contents(source))
    raise ImageError(
        f"A {type(source).__name__} is not an image; "
        "give a path, the bytes of a file, a file opened in binary mode, or a PIL image."
    )


def _bytes_stream(contents: Any) -> BinaryIO:
    if isinstance(contents, str):
        raise ImageError("This file was opened as text; open it in binary mode ('rb').")
    try:
        return io.BytesIO(contents)
    except (TypeError, ValueError, BufferError) as error:  # a released memoryview is a ValueError
        raise ImageError("What this file gave is not bytes; open it in binary mode ('rb').") from error


def _open_path(source: str | os.PathLike[str]) -> BinaryIO:
    text = os.fspath(source)
    if isinstance(text, str) and text.startswith(("http://", "https://", "ftp://", "data:")):
        raise ImageError("This is an address, not a file; download the image first and give the path of the file.")
    try:
        path = Path(os.fsdecode(text))
        if path.is_dir():
            raise ImageError(f"{str(path)!r} is a folder; give the path of one image file in it.")
        if path.exists() and not path.is_file():  # opening a pipe would wait for ever
            raise ImageError(f"{str(path)!r} is not a regular file; give the path of an image file.")
        return path.open("rb")
    except FileNotFoundError as error:
        raise ImageError(f"There is no file {text!r}; check the path.") from error
    except PermissionError as error:
        raise ImageError(f"The file {text!r} may not be read; change its permissions or choose another.") from error
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        raise ImageError(f"The path {text!r} cannot be opened; check it.") from error


def _contents(source: Any) -> Any:
    try:
        if hasattr(source, "getvalue"):
            return source.getvalue()
        return _read_all(source)
    except (OSError, ValueError, TypeError) as error:  # a closed file is a ValueError
        raise ImageError("This file can no longer be read; open it again in binary mode ('rb').") from error


def _read_all(source: Any) -> Any:
    """Everything in the file up to just over the limit, with the file's position put back where it has one."""
    try:
        position = source.tell()
        source.seek(0)
    except (AttributeError, OSError, ValueError):
        return _read_on(source)
    try:
        return _read_on(source)
    finally:
        source.seek(position)


def _read_on(source: Any) -> Any:
    contents = bytearray()
    while chunk := source.read(_CHUNK):  # a pipe may give less than asked for
        if isinstance(chunk, str):
            return chunk
        contents += chunk
        if len(contents) > MAX_BYTES:
            break
    return contents
