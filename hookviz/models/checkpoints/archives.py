from __future__ import annotations

import zipfile
from typing import BinaryIO

from hookviz.models.checkpoints.report import CheckpointError, subject
from hookviz.models.checkpoints.sources import MAX_BYTES, OpenCheckpoint

MAX_EXPANSION = 4
"""How many times its own size an archive may unpack to; torch.save does not compress, so that its own have 1."""

_MAX_DIRECTORY = 8 * 2**20
_SMALL = 2**20


def check(opened: OpenCheckpoint) -> None:
    """Look at an archive's directory, before anything is unpacked.

    Raises:
        CheckpointError: it would unpack to more than 4 GB or more than 4 times its size, is cut short, or is no archive
            of ``torch.save``.
    """
    entries = _entries(opened)
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > min(MAX_BYTES, max(MAX_EXPANSION * opened.size, _SMALL)):
        raise CheckpointError(
            f"{subject(opened.name)} would unpack from {_megabytes(opened.size)} to {_megabytes(unpacked)}, "
            f"and at most {MAX_EXPANSION} times its size and {MAX_BYTES // 2**30} GB are read; "
            "save it with torch.save, which does not compress."
        )
    records = {entry.filename.partition("/")[2] for entry in entries}
    if "constants.pkl" in records:
        raise CheckpointError(
            f"{subject(opened.name)} is a TorchScript program, which would run code; "
            "save its values alone with torch.save(model.state_dict(), path)."
        )
    if "data.pkl" not in records:
        raise CheckpointError(
            f"{subject(opened.name)} is a ZIP archive, but not one of torch.save; unpack it and choose a file from it."
        )


def pickled(stream: BinaryIO, limit: int) -> bytes:
    """Up to ``limit`` bytes of the archive's record ``data.pkl``."""
    with zipfile.ZipFile(stream) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
        with archive.open(name) as record:
            return record.read(limit)


def _entries(opened: OpenCheckpoint) -> list[zipfile.ZipInfo]:
    try:
        with zipfile.ZipFile(_Bounded(opened.stream)) as archive:
            return archive.infolist()
    except Exception as error:  # zipfile lets errors of struct and of decoding pass
        raise CheckpointError(
            f"{subject(opened.name)} could not be read, since it is cut short or damaged; copy or download it again."
        ) from error
    finally:
        opened.stream.seek(0)


class _Bounded:
    # zipfile reads the whole directory at once and makes an object of every entry in it.

    def __init__(self, stream: BinaryIO) -> None:
        self.seek, self.tell, self.seekable = stream.seek, stream.tell, stream.seekable
        self._read = stream.read

    def read(self, size: int = -1) -> bytes:
        if size > _MAX_DIRECTORY:
            raise zipfile.BadZipFile("a directory of more than 8 MB")
        return self._read(size)


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.1f} MB" if size < 2**30 else f"{size / 2**30:.1f} GB"
