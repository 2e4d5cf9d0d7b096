"""Pictures and numbers as bytes to save: PNG, SVG and PDF of a figure, NPZ of arrays, CSV of statistics."""

from __future__ import annotations

import csv
import io
import math
import re
import threading
import zipfile
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from hookviz.errors import ViewError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt
    from matplotlib.figure import Figure

    from hookviz.types import ChannelStatistics, Summary

FigureFormat: TypeAlias = Literal["png", "svg", "pdf"]

_DATE = {"png": "Software", "svg": "Date", "pdf": "CreationDate"}
_SPEED: dict[str, dict[str, Any]] = {"png": {"pil_kwargs": {"compress_level": 1}}}
_RANDOM_ID = re.compile(r'id="([a-zA-Z]*[0-9a-f]{10})"')
_COLUMNS = (
    "channel",
    "count",
    "mean",
    "std",
    "min",
    "max",
    "zeros",
    "sparsity",
    "nan",
    "posinf",
    "neginf",
    "dtype",
    "shows",
)
_STATISTICS = ("mean", "std", "min", "max", "zeros", "sparsity", "nan", "posinf", "neginf")

# Text layout shares font and layout caches between figures, and matplotlib calls itself not thread-safe:
# https://matplotlib.org/stable/users/faq.html#work-with-threads
_drawing = threading.Lock()


def figure_bytes(figure: Figure, format: FigureFormat = "png", *, dpi: float | None = None) -> bytes:  # noqa: A002 - matplotlib's word
    """A figure as a file: the same figure gives the same bytes, whenever and in whichever process.

    Args:
        figure: Any matplotlib figure.
        format: ``"png"``, ``"svg"`` or ``"pdf"``.
        dpi: Dots per inch; None is the figure's own.

    Raises:
        ViewError: Another format.
    """
    if format not in get_args(FigureFormat):
        raise ViewError(f"no figure format {format!r}; choose one of {', '.join(get_args(FigureFormat))}")
    stream = io.BytesIO()
    with _drawing:
        figure.savefig(
            stream,
            format=format,
            dpi=figure.dpi if dpi is None else dpi,
            facecolor=figure.get_facecolor(),
            transparent=False,
            metadata={_DATE[format]: None},
            **_SPEED.get(format, {}),
        )
    return _with_numbered_ids(stream.getvalue()) if format == "svg" else stream.getvalue()


def pdf_bytes(figures: Iterable[Figure]) -> bytes:
    """Figures as one PDF, a page for each, taken one after the other; of one figure the file of :func:`figure_bytes`.

    Raises:
        ViewError: No figure at all.
    """
    stream, number = io.BytesIO(), 0
    from matplotlib.backends.backend_pdf import PdfPages  # here, since few people ask for one

    with PdfPages(stream, metadata={_DATE["pdf"]: None}) as pages:
        for number, figure in enumerate(figures, 1):  # noqa: B007 - how many there were counts afterwards
            with _drawing:
                figure.savefig(
                    pages,
                    format="pdf",
                    dpi=figure.dpi,
                    facecolor=figure.get_facecolor(),
                    transparent=False,
                )
    if not number:
        raise ViewError("a PDF needs at least one figure")
    return stream.getvalue()


def npz_bytes(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Arrays as an NPZ file that ``numpy.load`` reads, each in its own dtype, under any name.

    Raises:
        ViewError: An array of Python objects, which cannot be loaded safely.
    """
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in arrays.items():
            if array.dtype.hasobject:
                raise ViewError(f"array {name!r} holds Python objects; export numbers only")
            # A ZipInfo made from a name alone is dated 1980, so the bytes do not depend on the clock.
            info = zipfile.ZipInfo(f"{name}.npy")
            info.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    return stream.getvalue()


def statistics_csv(summary: Summary, statistics: ChannelStatistics | None = None) -> str:
    """Statistics as CSV: a row ``all`` for the whole tensor, then one for each channel.

    Numbers are written so that they read back exactly; a statistic that does not exist (no finite value, no element) is
    an empty cell. ``std`` is the population's.
    """
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerow(_row("all", summary.count, (getattr(summary, name) for name in _STATISTICS), summary))
    if statistics is not None:
        columns = [np.asarray(getattr(statistics, name)).tolist() for name in _STATISTICS]
        for channel, values in enumerate(zip(*columns, strict=True)):
            writer.writerow(_row(str(channel), statistics.count, values, summary))
    return stream.getvalue()


def _row(channel: str, count: int, values: Iterable[float | None], summary: Summary) -> list[str]:
    return [channel, str(count), *map(_cell, values), summary.dtype, summary.shows]


def _cell(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else repr(value)


def _with_numbered_ids(svg: bytes) -> bytes:
    """Replace matplotlib's random ids by numbers; its own switch, ``svg.hashsalt``, is one for the whole process."""
    text = svg.decode()
    numbered = {name: f"id{position}" for position, name in enumerate(dict.fromkeys(_RANDOM_ID.findall(text)))}
    return re.sub(
        r'(id="|#)([a-zA-Z]*[0-9a-f]{10})\b', lambda match: match[1] + numbered.get(match[2], match[2]), text
    ).encode()
