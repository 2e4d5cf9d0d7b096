"""The names of a network's classes, from a text or a JSON file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from hookviz.errors import HookvizError

NamesSource: TypeAlias = str | os.PathLike[str] | bytes | bytearray | BinaryIO
"""A path, the bytes of a file, or a file opened in binary mode."""

MAX_BYTES = 16 * 2**20
_NUMBERED = re.compile(r"(\d{1,9})(\s*[:,;\t]\s*|\s+)(\S.*)")
_NEWLINE = re.compile(r"\r\n|\r|\n")


class ClassNamesError(HookvizError):
    """A file that does not give every class one name."""


def numbered_class_names(count: int) -> tuple[str, ...]:
    """What ``count`` classes are called where nobody named them: ``"class 0"`` and so on."""
    return tuple(f"class {index}" for index in range(count))


def read_class_names(source: NamesSource, *, expected: int | None = None) -> tuple[str, ...]:
    """Class names in the order of their indices, which count from 0.

    A text file has one name a line, or an index and a name (``0 cat``, ``0: cat``, ``0,cat``) in any order. A JSON file
    is a list of names, ``{"0": "cat"}``, ``{"cat": 0}``, Keras's ``{"0": ["n01440764", "tench"]}``, or a configuration
    with such a dictionary under ``"id2label"``. Two classes may share a name. ``expected`` is how many there must be.

    Raises:
        ClassNamesError: not UTF-8, not of these forms, an index missing or given twice, or another number of names.
    """
    text = _text(_contents(source))
    names = _from_json(text) if text.lstrip().startswith(("{", "[")) else _from_lines(text)
    if not names:
        raise ClassNamesError("The class names file has no names in it; write one name a line.")
    if expected is not None and len(names) != expected:
        raise ClassNamesError(
            f"The class names file has {len(names)} names, but the network has {expected} classes; give one for each."
        )
    return names


def _contents(source: Any) -> bytes:
    if isinstance(source, bytes | bytearray):
        contents: Any = bytes(source)
    elif isinstance(source, str | os.PathLike):
        contents = _read_path(Path(source).expanduser())
    elif callable(getattr(source, "getvalue", None)):  # leaves an upload's position where it is
        contents = source.getvalue()
    elif hasattr(source, "read"):
        contents = source.read(MAX_BYTES + 1)
    else:
        contents = None
    if not isinstance(contents, bytes):
        raise ClassNamesError("Class names are read from a path, bytes, or a file opened in binary mode; give one.")
    if len(contents) > MAX_BYTES:
        raise ClassNamesError(f"The class names file has more than {MAX_BYTES // 2**20} MB; give a list of names.")
    return contents


def _read_path(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():  # opening a pipe would wait for ever
            raise ClassNamesError(f"{str(path)!r} is not a file; give the path of a list of names.")
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise ClassNamesError(f"There is no file {str(path)!r}; check the path.") from error
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        raise ClassNamesError(f"The file {str(path)!r} cannot be opened; check its permissions.") from error


def _text(contents: bytes) -> str:
    try:
        text = contents.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ClassNamesError(
            f"The class names file is not UTF-8 text (byte {error.start} is 0x{contents[error.start]:02x}); "
            "save it again as UTF-8."
        ) from error
    if "\0" in text:
        raise ClassNamesError("The class names file is not UTF-8 text (it has zero bytes); save it again as UTF-8.")
    return text


def _from_lines(text: str) -> tuple[str, ...]:
    lines = [stripped for line in _NEWLINE.split(text) if (stripped := line.strip())]
    numbered = [match.groups() for line in lines if (match := _NUMBERED.fullmatch(line))]
    if not lines or len(numbered) < len(lines):
        return tuple(lines)
    pairs = [(int(index), _unquoted(name)) for index, _, name in numbered]
    if all(separator.isspace() and separator != "\t" for _, separator, _ in numbered) and not _look_like_indices(pairs):
        return tuple(lines)
    return _in_order(pairs)


def _look_like_indices(pairs: list[tuple[int, str]]) -> bool:
    """Whether numbers in front of names count them: "0 cat", but not "2012 coupe"."""
    indices = {index for index, _ in pairs}
    return 0 in indices or indices == set(range(1, len(pairs) + 1))


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if len(name) > 2 and name[0] == name[-1] == '"' else name


def _from_json(text: str) -> tuple[str, ...]:
    try:
        stored = json.loads(text, object_pairs_hook=_Pairs)
    except json.JSONDecodeError as error:
        raise ClassNamesError(
            f"The class names file is not valid JSON (line {error.lineno}: {error.msg}); correct it there."
        ) from error
    except RecursionError as error:
        raise ClassNamesError("The class names file is nested too deeply; give a plain list of names.") from error
    if not isinstance(stored, _Pairs):
        return tuple(_name(entry, index) for index, entry in enumerate(stored))
    labels = next((value for key, value in stored if key == "id2label" and isinstance(value, _Pairs)), stored)
    return _in_order(_indexed(labels))


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with the keys that it gives twice."""


def _indexed(pairs: _Pairs) -> list[tuple[int, str]]:
    if pairs and all(isinstance(value, int) and not isinstance(value, bool) for _, value in pairs):
        return [(value, _name(key, value)) for key, value in pairs]
    for key, _ in pairs:
        if not re.fullmatch(r"[0-9]{1,9}", key):
            raise ClassNamesError(
                f"The class names file has {key!r} where an index should be; "
                'write {"0": "name"}, {"name": 0} or a list of names.'
            )
    return [(int(key), _name(value, int(key))) for key, value in pairs]


def _name(entry: Any, index: int) -> str:
    if isinstance(entry, list) and not isinstance(entry, _Pairs) and len(entry) == 2:  # Keras: WordNet's number first
        entry = entry[1]
    if not isinstance(entry, str) or not entry.strip():
        raise ClassNamesError(f"The class names file has no name for class {index}, but {_shown(entry)}; write one.")
    return entry.strip()


def _shown(entry: Any) -> str:
    return json.dumps(dict(entry) if isinstance(entry, _Pairs) else entry)[:40]


def _in_order(pairs: Iterable[tuple[int, str]]) -> tuple[str, ...]:
    names: dict[int, str] = {}
    for index, name in pairs:
        if index in names:
            raise ClassNamesError(f"The class names file gives index {index} twice; give each class one line.")
        names[index] = name
    missing = next((index for index in range(len(names)) if index not in names), None)
    if missing is not None:
        raise ClassNamesError(
            f"The class names file has {len(names)} names but none for index {missing}; "
            f"number them from 0 to {len(names) - 1}."
        )
    return tuple(names[index] for index in range(len(names)))
