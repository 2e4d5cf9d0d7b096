"""The images of a check: that of the sidebar, files of a visitor's own, or a folder that is allowed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from hookviz.images import load_image
from hookviz.images.reading import read_image
from hookviz.models import Model, load_frames
from hookviz.sanity import Item
from hookviz.sanity.answers import label_index
from hookviz.sanity.items import Content, numbered
from hookviz.ui import resources
from hookviz.ui.resources import MOVING
from hookviz.ui.sidebar import ChosenImage

MOST_IMAGES = 500
"""Of one check on the page; of a larger folder so many are taken."""

MOST_BYTES = 128 * 2**20
"""Of all files of one visitor's check together."""


@dataclass(frozen=True, slots=True, eq=False)
class Images:
    """What is looked at, and what it is known by: the images' contents, and their labels."""

    key: str
    items: tuple[Item, ...]


def of_sidebar(model: Model, image: ChosenImage) -> Images:
    """The one image that the other pages show."""
    return of_files(model, [image])


def of_files(model: Model, files: Sequence[ChosenImage]) -> Images:
    """Files in the order of choosing; a second one of the same name gets a number."""
    items = tuple(numbered([Item(file.title, _reading(model, file)) for file in files]))
    return Images(_key([f"{item.name} {file.key}" for item, file in zip(items, files, strict=True)]), items)


def of_folder(folder: str, pictures: Sequence[Item], most: int, *, labelled: bool) -> Images:
    """At most so many pictures of a folder, evenly spread over all; labelled, each by the folder that it lies in."""
    count = min(most, len(pictures))
    chosen = [pictures[index * len(pictures) // count] for index in range(count)]
    if labelled:
        chosen = [replace(one, label=PurePosixPath(one.name).parent.name or None) for one in chosen]
    return Images(_key([folder, *(f"{one.name} {one.stamp} {one.label}" for one in chosen)]), tuple(chosen))


def names_classes(pictures: Sequence[Item], model: Model) -> bool:
    """Whether some picture lies in a folder that is called like a class."""
    folders = {PurePosixPath(one.name).parent.name for one in pictures} - {""}
    count = len(model.categories)
    return any(label_index(one, count, model.categories) is not None for one in folders)


def _reading(model: Model, file: ChosenImage) -> Callable[[], Content]:
    """What reads a file: of a network that takes several frames, what it makes of them."""

    def read() -> Content:
        said = hashlib.sha256(file.content + (file.second or b"")).hexdigest()
        if model.task not in MOVING:
            return Content(load_image(file.content), said)
        frames = load_frames(file.content)
        if file.second is not None:
            frames = [read_image(one).image for one in (file.content, file.second)]
        return Content(model.prepare(tuple(frames)), said)

    return read


def _key(parts: Sequence[str]) -> str:
    return resources.digest("\n".join(parts).encode())
