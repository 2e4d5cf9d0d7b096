"""Rows of words and numbers as lines of text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence


def table_lines(titles: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Collection[str]) -> list[str]:
    """A table as lines of text, a heading first: text to the left, the columns named in ``numbers`` to the right."""
    lines = [titles, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(titles))]
    return ["  ".join(_aligned(titles, line, widths, numbers)).rstrip() for line in lines]


def _aligned(
    titles: Sequence[str], line: Sequence[str], widths: Sequence[int], numbers: Collection[str]
) -> Iterator[str]:
    for title, cell, width in zip(titles, line, widths, strict=True):
        yield cell.rjust(width) if title in numbers else cell.ljust(width)
