"""Numbers as a reader sees them in a picture."""

from __future__ import annotations

import math
import re

MINUS = "\N{MINUS SIGN}"
NO_FINITE = "no finite values"

_EXPONENT_PADDING = re.compile(r"e\+?(-?)0*")


def number(value: float, digits: int = 4) -> str:
    """A value with so many significant digits and a true minus sign: ``"−24.53"``, ``"1e−6"``."""
    if not math.isfinite(value):
        return str(value).replace("-", MINUS)
    text = _EXPONENT_PADDING.sub(r"e\1", format(value + 0.0, f".{digits}g"))  # adding 0.0 makes -0.0 plain 0
    return text.replace("-", MINUS)


def value_range(low: float, high: float, digits: int = 3) -> str:
    """The range of a channel: ``"0 … 3.5"``, ``"constant 7"``, or that it has no finite values (NaN limits)."""
    if math.isnan(low):
        return NO_FINITE
    if low == high:
        return f"constant {number(low, digits)}"
    return f"{number(low, digits)} … {number(high, digits)}"


def fitting_range(low: float, high: float, characters: int) -> str:
    """The range of a channel with as many significant digits, 3 to 1, as fit; a constant at last without the word."""
    texts = [value_range(low, high, digits) for digits in (3, 2, 1)]
    if low == high:
        texts.append(number(low, 2))
    return next((text for text in texts if len(text) <= characters), texts[-1])
