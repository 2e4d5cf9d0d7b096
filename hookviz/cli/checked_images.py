"""The images that a check is about, from the words that name them."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from hookviz.cli.subject import SAMPLE, STDIN
from hookviz.errors import ImageError
from hookviz.images import load_image
from hookviz.samples import list_samples, sample_bytes
from hookviz.sanity import Item, items_of
from hookviz.sanity.items import Content


def named_items(words: Sequence[str]) -> list[Item]:
    """One item for each image; of several words, images have names that begin with the word as it was given.

    Raises:
        HookvizError: a word names nothing, or a folder without images.
    """
    found = [item for word in words for item in _items(word, alone=len(words) == 1)]
    return items_of(found)


def _items(word: str, *, alone: bool) -> Iterator[Item]:
    path = Path(word)
    if word == STDIN:
        yield _item_of_bytes("stdin", _stdin_bytes(), stamp="")
    elif word.startswith(SAMPLE):
        yield _sample(word.removeprefix(SAMPLE))
    elif path.exists() and not (path.is_file() or path.is_dir()):  # a pipe, which can be read but once
        yield _item_of_bytes(word, path.read_bytes(), stamp="")
    elif path.exists():
        for item in items_of(path):
            yield item if alone else replace(item, name=_longer_name(path, item.name))
    elif word in {sample.name for sample in list_samples()}:
        yield _sample(word)
    else:
        raise ImageError(f"There is no file, folder or sample {word!r}; {_hint(word)}")


def _longer_name(path: Path, name: str) -> str:
    return (path / name if path.is_dir() else path).as_posix()


def _sample(name: str) -> Item:
    content = sample_bytes(name)
    return _item_of_bytes(name, content, stamp=hashlib.sha256(content).hexdigest())


def _item_of_bytes(name: str, content: bytes, *, stamp: str) -> Item:
    return Item(name, lambda: Content(load_image(content), hashlib.sha256(content).hexdigest()), stamp=stamp)


def _stdin_bytes() -> bytes:
    if sys.stdin is None:
        raise ImageError("There is nothing on stdin; give the path of an image or a folder.")
    return sys.stdin.buffer.read()


def _hint(word: str) -> str:
    close = get_close_matches(word, [sample.name for sample in list_samples()], n=1)
    return f"did you mean {close[0]!r}?" if close else "check the path."
