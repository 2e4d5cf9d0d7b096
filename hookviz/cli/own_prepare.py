from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PIL import Image

from hookviz.errors import HookvizError
from hookviz.models.own import named_object


def named_prepare(target: str) -> Callable[[Image.Image], Any]:
    """The function that ``package.module:function`` or ``path/to/file.py:function`` names.

    Raises:
        HookvizError: it cannot be imported, is not there, or cannot be called.
    """
    location, colon, name = target.rpartition(":")
    if not (location and colon and name):
        raise HookvizError(f"{target!r} names no function; write package.module:function, or file.py:function.")
    prepare: Any = named_object(target, role="a function of it that makes the network's input of an image")
    if not callable(prepare):
        raise HookvizError(f"{target} cannot be called; name a function that makes the network's input of an image.")
    made: Callable[[Image.Image], Any] = prepare
    return made
