"""The folders that whoever started the page allows to be checked, by name; a visitor never says a path."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import streamlit as st

from hookviz.errors import HookvizError, ImageError
from hookviz.sanity.items import Content, Item, items_of
from hookviz.ui.start_options import start_options

_SECONDS_KEPT = 30
"""How long a list of files is believed."""


def allowed_folders() -> dict[str, Path]:
    """The folders by the names that visitors see."""
    return named_folders(start_options().folders)


def named_folders(paths: Iterable[str]) -> dict[str, Path]:
    """Each folder once, by its own name; a second one of the same name gets a number."""
    named: dict[str, Path] = {}
    for folder in dict.fromkeys(Path(one).expanduser().resolve() for one in paths):
        name, number = folder.name or "folder", 1
        while name in named:
            number += 1
            name = f"{folder.name} ({number})"
        named[name] = folder
    return named


@st.cache_resource(show_spinner=False, max_entries=8, ttl=_SECONDS_KEPT)
def pictures_in(folder: str) -> list[Item]:
    """The pictures in an allowed folder and those inside it; none where it holds none, or went."""
    root = Path(folder)
    if not root.is_dir():
        return []
    try:
        items = items_of(root)
    except HookvizError:  # it holds none
        return []
    return [kept_inside(root, item) for item in items if _is_inside(root, item.name)]


def kept_inside(root: Path, item: Item) -> Item:
    """The item of a folder, read only while its file really lies in there: a link may come to point elsewhere."""

    def read() -> Content:
        if not _is_inside(root, item.name):
            raise ImageError(f"{item.name} lies outside the folder; copy it there.")
        try:
            return item.read()
        except ImageError as error:
            # The path of the folder is nobody's business.
            raise ImageError(str(error).replace(f"{root}/", "")) from error

    return Item(item.name, read, item.label, item.stamp)


def _is_inside(root: Path, name: str) -> bool:
    try:
        return (root / name).resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError):  # it went, or links go round in a circle
        return False
