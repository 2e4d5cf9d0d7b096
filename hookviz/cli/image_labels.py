"""The classes that images are known to show."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hookviz.cli.console import Console
from hookviz.errors import HookvizError
from hookviz.sanity import Item
from hookviz.sanity.items import FOLDERS


class LabelsError(HookvizError):
    """A file that does not give images their labels."""


def labelled(items: Sequence[Item], choice: str | None, words: Sequence[str], console: Console) -> list[Item]:
    """The items with their labels, by their folders or by the file that ``choice`` names.

    Args:
        items: the images.
        choice: ``folders``, the path of a file, or None for no labels.
        words: what the items were named by.
        console: told of images without a label.

    Raises:
        LabelsError: the file cannot be read, or has no label for any of the images.
    """
    if choice is None:
        return list(items)
    if choice == FOLDERS:
        return _by_folder(items, words)
    labels = read_labels(Path(choice))
    found = [replace(item, label=_label(item.name, labels)) for item in items]
    without = [item.name for item in found if item.label is None]
    if len(without) == len(found):
        raise LabelsError(f"{choice!r} has no label for any of the images; write lines such as {without[0]},cat.")
    if without:
        console.note(f"without a label in {choice}: {len(without):,} of {len(found):,} images, such as {without[0]}")
    return found


def read_labels(path: Path) -> dict[str, str]:
    """Labels by the names of images, from lines of ``name,label``; quotes hold what has a comma in it.

    A heading is a line like others, for an image that there is not.

    Raises:
        LabelsError: it cannot be read, a line is none of these, or an image has two labels.
    """
    labels: dict[str, str] = {}
    reader = csv.reader(_text(path).splitlines(), skipinitialspace=True)
    for row in reader:
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        if len(cells) != 2 or not all(cells):
            raise LabelsError(
                f"{str(path)!r} has no name and label in line {reader.line_num}; "
                'write name,label, with quotes around what has a comma: cat.png,"cat, tabby".'
            )
        if labels.setdefault(cells[0], cells[1]) != cells[1]:
            raise LabelsError(f"{str(path)!r} labels {cells[0]!r} twice, and differently; leave one of the lines.")
    return labels


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise LabelsError(f"The labels {str(path)!r} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise LabelsError(f"The labels {str(path)!r} are not UTF-8 text; save them again as UTF-8.") from error


def _label(name: str, labels: Mapping[str, str]) -> str | None:
    return labels.get(name, labels.get(Path(name).name))


def _by_folder(items: Sequence[Item], words: Sequence[str]) -> list[Item]:
    """By the folder that an image lies in; that of a folder of folders has no class of its own."""
    parents = [Path(item.name).parent.name for item in items]
    if not any(parents):
        path = Path(words[0]).resolve()
        parents = [path.name if path.is_dir() else path.parent.name] * len(items)
    return [replace(item, label=parent or None) for item, parent in zip(items, parents, strict=True)]
