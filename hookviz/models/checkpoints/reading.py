from __future__ import annotations

import io
import pickle
from typing import Any

import torch

from hookviz.models.checkpoints import archives, pickles
from hookviz.models.checkpoints.report import CheckpointError, subject
from hookviz.models.checkpoints.sources import CheckpointSource, OpenCheckpoint, open_checkpoint
from hookviz.models.checkpoints.states import Checkpoint
from hookviz.models.device import is_out_of_memory

SUFFIXES = (".pth", ".pt", ".bin", ".safetensors")
"""How the names of checkpoints end. What a file is, its content decides."""

_ZIP = b"PK\x03\x04"
_PICKLE = b"\x80"
_MAX_SAFETENSORS_HEADER = 100 * 2**20  # the format's own limit
_OTHER_KINDS = (
    (b"\x89HDF", "an HDF5 file, as Keras writes"),
    (b"\x1f\x8b", "a gzip archive; unpack it first"),
    (b"version https://git-lfs", "a Git LFS pointer; fetch the file it stands for"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"GGUF", "a GGUF file"),
    (b"<", "a web page; download the file itself"),
)


def read_checkpoint(source: CheckpointSource) -> Checkpoint:
    """The tensors of a checkpoint by name, on the CPU; nothing in the file is run.

    The content decides how it is read: safetensors, or what ``torch.save`` wrote, now or before torch 1.6, through
    ``torch.load(weights_only=True)``. The mapping holds the model's state dict, taken out of a dictionary around it;
    what else the file has is in :attr:`Checkpoint.states` and :attr:`Checkpoint.ignored`.

    Raises:
        CheckpointError: larger than 4 GB or unpacking to that; cut short; holding code or a whole model; no state dict.
    """
    with open_checkpoint(source) as opened:
        stored = _stored(opened)
        return Checkpoint.of(stored, name=opened.name)


def _stored(opened: OpenCheckpoint) -> Any:
    start = opened.stream.read(64)
    opened.stream.seek(0)
    if start.startswith(_ZIP):
        archives.check(opened)
        return _load(opened)
    if start.startswith(_PICKLE):
        return _load(opened)
    if start[8:9] == b"{":
        return _load_safetensors(opened)
    raise CheckpointError(f"{subject(opened.name)} {_what_else(opened, start)}.")


def _load(opened: OpenCheckpoint) -> Any:
    try:
        return torch.load(opened.stream, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise CheckpointError(f"{subject(opened.name)} {pickles.refusal(opened)}.") from error
    except Exception as error:  # a damaged file can raise anything
        raise _damaged(opened, error) from error


def _load_safetensors(opened: OpenCheckpoint) -> Any:
    from safetensors.torch import load  # here, since most checkpoints do not need it

    header = int.from_bytes(opened.stream.read(8), "little")
    opened.stream.seek(0)
    if header > min(opened.size - 8, _MAX_SAFETENSORS_HEADER):
        raise CheckpointError(
            f"{subject(opened.name)} is cut short or damaged: it has {opened.size} bytes, and its header alone should "
            f"have {header}; copy or download it again."
        )
    try:
        return load(opened.stream.read())
    except Exception as error:  # SafetensorError, and KeyError for types that torch does not have
        raise _damaged(opened, error) from error


def _damaged(opened: OpenCheckpoint, error: Exception) -> CheckpointError:
    if isinstance(error, MemoryError) or is_out_of_memory(error):
        return CheckpointError(f"{subject(opened.name)} asks for more memory than there is; save its state_dict alone.")
    return CheckpointError(
        f"{subject(opened.name)} could not be read, since it is cut short or damaged; copy or download it again."
    )


def _what_else(opened: OpenCheckpoint, start: bytes) -> str:
    for beginning, name in _OTHER_KINDS:
        if start.lstrip().startswith(beginning):
            return f"is {name}"
    if pickles.is_pickle(io.BytesIO(opened.stream.read(pickles.MAX_BYTES))):
        return pickles.refusal(opened)
    return "is neither safetensors nor a file of torch.save; save model.state_dict() with torch.save"
