"""Tables, and numbers as they stand in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hookviz.sanity.findings import counted, percent
from hookviz.sanity_report.markup import Markup, joined, tag
from hookviz.views import number

NOTHING = "–"


@dataclass(frozen=True, slots=True)
class Column:
    """The head of a column; numbers stand on the right."""

    title: str
    is_number: bool = False
    hint: str = ""


def table(says: str, columns: Sequence[Column], rows: Iterable[Markup], *, class_: str = "") -> Markup:
    """A table of what it ``says``, in a box that scrolls by itself where the page is too narrow."""
    heads = [tag("th", one.title, scope="col", class_=_class(one), title=one.hint or None) for one in columns]
    inside = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows), class_=class_ or None)
    return tag("div", inside, class_="scroll", tabindex=0, role="region", aria_label=says)


def row(columns: Sequence[Column], cells: Sequence[object], **attributes: object) -> Markup:
    """A row; cells that are None say that there is nothing to say."""
    made = [
        tag("td", NOTHING if cell is None else cell, class_=_class(column, cell))
        for column, cell in zip(columns, cells, strict=True)
    ]
    return tag("tr", *made, **attributes)


def more(total: int, shown: int, word: str) -> Markup:
    """How many further ones a table leaves out; nothing where it has all."""
    left = total - shown
    return tag("p", f"and {counted(left, word)} more", class_="quiet") if left > 0 else joined(())


def figure_or_nothing(value: float | None) -> str | None:
    """A measured number, or None where there is none."""
    return None if value is None else number(value)


def plus_minus(mean: float | None, deviation: float | None) -> str:
    """``0.26 ± 1.32``."""
    return NOTHING if mean is None or deviation is None else f"{number(mean, 3)} ± {number(deviation, 3)}"


def share(part: float | None) -> str | None:
    """A share in percent, None where there is none."""
    return None if part is None else percent(part)


def amount(value: float) -> str:
    """A finding's number: whole ones with every digit."""
    whole = abs(value) < 1e15 and value == int(value)
    return f"{int(value):,}".replace("-", "−") if whole else number(value)


def _class(column: Column, cell: object = "") -> str | None:
    words = ["number"] if column.is_number else []
    if cell is None or (column.is_number and cell in {"0", "0 %"}):
        words.append("nil")
    return " ".join(words) or None
