"""What all channels together say of each position, as pictures of a pixel for each."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
from matplotlib import colormaps
from PIL import Image

from hookviz.errors import ViewError
from hookviz.views.palette import NAN, palette

if TYPE_CHECKING:
    import numpy.typing as npt

_TEN, _TWENTY = "tab10", "tab20"


def pca_picture(rgb: npt.NDArray[np.floating]) -> bytes:
    """A colour for each position as PNG; positions that are not known have the colour of NaN in a mosaic.

    Args:
        rgb: (H, W, 3) from 0 to 1, as ``PcaPicture.rgb``.

    Raises:
        ViewError: Another shape.
    """
    if rgb.ndim != 3 or rgb.shape[2] != 3 or not rgb.size:
        raise ViewError(f"colours of positions are (height, width, 3), got shape {rgb.shape}")
    known = np.isfinite(rgb).all(axis=2)
    colours = np.rint(np.clip(np.where(known[..., None], rgb, 0.0), 0.0, 1.0) * 255).astype(np.uint8)
    return _png(colours, known)


def cluster_picture(labels: npt.NDArray[np.integer]) -> bytes:
    """Groups of positions as PNG, each in its own of :func:`cluster_colours`; label -1 has the colour of NaN.

    Args:
        labels: (H, W), as ``cluster_positions`` has them.

    Raises:
        ViewError: Another shape.
    """
    if labels.ndim != 2 or not labels.size:
        raise ViewError(f"labels of positions are (height, width), got shape {labels.shape}")
    known = labels >= 0
    colours = _group_colours(int(labels.max(initial=0)) + 1)
    return _png(colours[np.where(known, labels, 0)], known)


def cluster_colours(groups: int) -> tuple[str, ...]:
    """The colour of each of so many groups as ``#rrggbb``; after twenty they repeat."""
    return tuple(f"#{colour.tobytes().hex()}" for colour in _group_colours(groups))


def _group_colours(groups: int) -> npt.NDArray[np.uint8]:
    name = _TEN if groups <= 10 else _TWENTY
    listed = np.asarray(colormaps[name](np.arange(groups) % colormaps[name].N, bytes=True))
    return listed[:, :3].astype(np.uint8)


def _png(colours: npt.NDArray[np.uint8], known: npt.NDArray[np.bool_]) -> bytes:
    painted = np.where(known[..., None], colours, palette("viridis")[NAN])
    stream = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(painted)).save(stream, format="PNG", compress_level=1)
    return stream.getvalue()
