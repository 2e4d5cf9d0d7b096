"""What a check looks at, one item after another: files, folders, pictures and tensors."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from PIL import Image
from torch import Tensor

from hookviz.errors import HookvizError, ImageError
from hookviz.images import load_image

Label: TypeAlias = "str | int"

FOLDERS = "folders"
"""Said in place of labels: the folder that an image lies in names its class."""

PICTURE_SUFFIXES = frozenset(
    {
        *(".jpg", ".jpeg", ".jpe", ".jfif", ".jp2", ".j2k", ".png", ".apng", ".gif", ".bmp", ".dib", ".webp", ".avif"),
        *(".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".pnm", ".qoi", ".ico", ".heic", ".heif"),
    }
)
"""Files of a folder that are meant to be pictures; others are passed over. Which of them are, their content decides."""


@dataclass(frozen=True, slots=True)
class Content:
    """An item that was read: an upright RGB picture, or the network's input as somebody prepared it."""

    value: Image.Image | Tensor
    sha256: str
    """Of a file's bytes, of a picture's pixels with mode and size in front, of a tensor's values."""


@dataclass(frozen=True, slots=True)
class Item:
    """One image by name; ``label`` is its class where that is known."""

    name: str
    read: Callable[[], Content]
    label: Label | None = None
    stamp: str = ""
    """What changes with a file: its size and the time it was written."""


def items_of(images: Any, labels: Sequence[Label] | Mapping[str, Label] | str | None = None) -> list[Item]:
    """One item for each image; nothing is read yet.

    Args:
        images: a path of a file or folder (with all folders in it), a PIL image, a prepared tensor (N, C, H, W), or a
            list of any of these.
        labels: the class of each image by index or name, in the order of the images or by their names; ``"folders"``
            takes the name of the folder that a file lies in.

    Raises:
        HookvizError: none of these, no image in a folder, or as many labels as there are no images.
    """
    found = list(_each(images))
    if not found:
        raise HookvizError(f"There are no images in {images}; name a folder that holds some, or pass pictures.")
    if labels is None:
        return found
    if labels == FOLDERS:
        return [_labelled(item, Path(item.name).parent.name or None) for item in found]
    if isinstance(labels, Mapping):
        return [_labelled(item, labels.get(item.name, labels.get(Path(item.name).name))) for item in found]
    if isinstance(labels, str) or len(labels) != len(found):
        raise HookvizError(f"There are {len(found)} images; give one label for each, in their order, or 'folders'.")
    return [_labelled(item, label) for item, label in zip(found, labels, strict=True)]


def _each(images: Any) -> Iterator[Item]:
    if isinstance(images, (str, Path)):
        path = Path(images)
        if path.is_dir():
            yield from (_file(one, one.relative_to(path).as_posix()) for one in _pictures(path))
        elif path.exists():
            yield _file(path, path.name)
        else:
            raise ImageError(f"There is no file or folder {path}; check the path.")
    elif isinstance(images, Image.Image):
        yield _picture(images, getattr(images, "filename", "") or "image")
    elif isinstance(images, Tensor):
        count = images.shape[0] if images.ndim == 4 else 1
        parts = images.split(1) if count > 1 else [images if images.ndim != 3 else images.unsqueeze(0)]
        names = [f"tensor {number}" for number in range(1, count + 1)] if count > 1 else ["tensor"]
        yield from map(_tensor, parts, names)
    elif isinstance(images, Item):
        yield images
    elif isinstance(images, Sequence) and not isinstance(images, bytes):
        yield from numbered([item for one in images for item in _each(one)])
    else:
        raise HookvizError(
            f"{type(images).__name__} is no image; pass a path, a folder, a PIL image, a tensor, or a list of these."
        )


def numbered(items: Sequence[Item]) -> Iterator[Item]:
    """Names told apart: a second item of the same name gets a number."""
    seen: dict[str, int] = {}
    for item in items:
        seen[item.name] = seen.get(item.name, 0) + 1
        again = seen[item.name] > 1
        yield Item(f"{item.name} ({seen[item.name]})", item.read, item.label, item.stamp) if again else item


def _pictures(folder: Path) -> list[Path]:
    """The files in a folder and in those inside it, in the order of their names, without hidden ones.

    A link that leads nowhere is one of them, so that it is not overlooked.
    """
    return sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in PICTURE_SUFFIXES
        and (path.is_file() or (path.is_symlink() and not path.exists()))
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )


def _file(path: Path, name: str) -> Item:
    def read() -> Content:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ImageError(f"{path} cannot be read: {error.strerror or error}.") from error
        return Content(load_image(content), hashlib.sha256(content).hexdigest())

    try:
        about = path.stat()
    except OSError:  # reading it will say why
        return Item(name, read, stamp="gone")
    return Item(name, read, stamp=f"{about.st_size} {about.st_mtime_ns}")


def _picture(image: Image.Image, name: str) -> Item:
    def digest() -> str:
        head = f"{image.mode} {image.size}".encode()
        return hashlib.sha256(head + image.tobytes()).hexdigest()

    return Item(Path(name).name, lambda: Content(load_image(image), digest()))


def _tensor(tensor: Tensor, name: str) -> Item:
    def digest() -> str:
        return hashlib.sha256(np.ascontiguousarray(tensor.detach().cpu().double().numpy()).tobytes()).hexdigest()

    return Item(name, lambda: Content(tensor, digest()))


def _labelled(item: Item, label: Label | None) -> Item:
    return Item(item.name, item.read, label, item.stamp)
