"""What a pickle would load, read off its opcodes without unpickling anything: for the sentence that refuses it."""

from __future__ import annotations

import pickletools
import re
from io import BytesIO
from typing import BinaryIO

from hookviz.models.checkpoints import archives
from hookviz.models.checkpoints.sources import OpenCheckpoint

MAX_BYTES = 16 * 2**20
"""How much of a pickle is looked through."""

_PICKLES = 5  # torch's files before 1.6 are as many, one after another, and then raw values

_PLAIN = re.compile(
    r"collections\.(OrderedDict|Counter)|_codecs\.encode|(builtins|__builtin__)\.(set|bytearray|complex)"
    r"|torch\.(_utils|_tensor)\._rebuild\w+|torch\.serialization\._get_layout|torch\.nn\.parameter\.Parameter"
    r"|torch\.(storage\.)?\w*Storage|torch\.(Size|Tensor|device|\w*(float|int|bool|complex)\w*)"
)


def refusal(opened: OpenCheckpoint) -> str:
    """Why ``torch.load(weights_only=True)`` refused, to go on after "The checkpoint"."""
    foreign = foreign_names(_pickled(opened))
    if any(name.startswith(("torch.nn.modules.", "torch.fx.")) for name in foreign):
        return (
            f"holds a whole model ({foreign[0]}), which loads by running code; "
            "save its values alone with torch.save(model.state_dict(), path)"
        )
    if foreign:
        return (
            f"holds {foreign[0]}, which could run code, so nothing in it was loaded; "
            "save tensors alone with torch.save(model.state_dict(), path)"
        )
    return (
        "is a pickle that cannot be read safely, damaged or not in torch.save's usual protocol; "
        "save it again with torch.save(model.state_dict(), path)"
    )


def is_pickle(stream: BytesIO) -> bool:
    """Whether the stream begins with one whole pickle."""
    try:
        return all(True for _ in pickletools.genops(stream))
    except Exception:  # noqa: BLE001  # on other bytes, pickletools can trip over anything
        return False


def foreign_names(stream: BytesIO) -> list[str]:
    """Functions and classes that the pickles in ``stream`` name, other than those of plain tensors, as they appear."""
    names: list[str] = []
    try:
        for _ in range(_PICKLES):
            _collect_names(stream, names)
    except Exception:  # noqa: BLE001, S110  # where the pickles end, pickletools can trip over anything
        pass
    return [name for name in dict.fromkeys(names) if not _PLAIN.fullmatch(name)]


def _collect_names(stream: BytesIO, names: list[str]) -> None:
    strings: list[str] = []
    for opcode, argument, _ in pickletools.genops(stream):
        if opcode.name in {"GLOBAL", "INST"}:
            names.append(str(argument).replace(" ", "."))
        elif opcode.name == "STACK_GLOBAL":
            names.append(".".join(strings[-2:]))
        elif isinstance(argument, str):
            strings.append(argument)


def _pickled(opened: OpenCheckpoint) -> BytesIO:
    stream: BinaryIO = opened.stream
    stream.seek(0)
    is_archive = stream.read(2) == b"PK"
    stream.seek(0)
    return BytesIO(archives.pickled(stream, MAX_BYTES) if is_archive else stream.read(MAX_BYTES))
