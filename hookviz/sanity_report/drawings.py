"""Figures as part of the page: drawn once, coloured by the page in the reader's theme."""

from __future__ import annotations

import base64
import re
from dataclasses import asdict
from itertools import count

from matplotlib.figure import Figure

from hookviz.sanity_report.markup import Markup, image, joined, tag
from hookviz.views import figure_bytes
from hookviz.views.theme import theme_colours

_HEAD = re.compile(r"^.*?<svg[^>]*?viewBox=\"([^\"]*)\"[^>]*>.*?</defs>", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_PATH = re.compile(r' d="[^"]*"')
_DIGITS = re.compile(r"(\d\.\d\d)\d+")
_ID = re.compile(r'(id="|href="#|url\(#)')
_INDENT = 14.4
"""Points that every figure leaves free on its left; without them its words stand in line with the page's."""


class Drawings:
    """Numbers the figures of one page, whose parts need names of their own."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def figure(self, figure: Figure, says: str) -> Markup:
        """A figure drawn in the light theme, as SVG with the page's colours; ``says`` is for those who cannot see it.

        Places are rounded to a hundredth of a point, which is less than a printer resolves.
        """
        svg = _COMMENT.sub("", figure_bytes(figure, "svg").decode())  # they repeat every word of the figure
        found = _HEAD.match(svg)
        _, top, width, height = (float(length) for length in (found[1] if found else "0 0 0 0").split())
        inside = _PATH.sub(lambda path: _DIGITS.sub(r"\1", path[0]), svg[found.end() if found else 0 :])
        inside = _ID.sub(rf"\1d{next(self._numbers)}-", inside)
        for part, colour in asdict(theme_colours("light")).items():
            inside = inside.replace(colour, f"var(--{part})")
        shown = f"{_INDENT} {top:g} {width - _INDENT:g} {height:g}"
        head = Markup(f'<svg viewBox="{shown}" role="img" class="drawing">')
        drawn = joined((head, tag("desc", says), Markup(inside)))
        return tag("figure", tag("div", drawn, class_="scroll", tabindex=0, role="region", aria_label=says))


def embedded(figure: Figure, says: str) -> Markup:
    """A figure as a picture that stands alone, as SVG or PNG: what is smaller."""
    made = {"svg+xml": figure_bytes(figure, "svg"), "png": figure_bytes(figure, "png", dpi=200)}
    kind = min(made, key=lambda one: len(made[one]))
    width, height = (round(100 * inches) for inches in figure.get_size_inches())
    return image(src=data_url(made[kind], kind), width=width, height=height, alt=says)


def data_url(picture: bytes, kind: str = "png") -> str:
    """A picture as an address that holds it."""
    return f"data:image/{kind};base64,{base64.b64encode(picture).decode()}"
