"""Numbers as a reader sees them in a picture."""

from __future__ import annotations

import math
import re
from typing import Literal, TypeAlias

Numbers: TypeAlias = Literal["real", "integer", "boolean"]
"""What values are, and so how they are written."""

MINUS = "\N{MINUS SIGN}"
NO_FINITE = "no finite values"

_EXPONENT_PADDING = re.compile(r"e\+?(-?)0*")


def number(value: float, digits: int = 4) -> str:
    """A value with so many significant digits and a true minus sign: ``"−24.53"``, ``"1e−6"``."""
    if not math.isfinite(value):
        return str(value).replace("-", MINUS)
    text = _EXPONENT_PADDING.sub(r"e\1", format(value + 0.0, f".{digits}g"))  # adding 0.0 makes -0.0 plain 0
    return text.replace("-", MINUS)


def numbers_of(dtype: str, shows: str = "value") -> Numbers:
    """What the values of a tensor of such a dtype are, where they show what ``ChannelMaps.shows`` says."""
    if shows == "stored integer" or (shows == "value" and dtype.startswith(("int", "uint"))):
        return "integer"
    return "boolean" if shows == "value" and dtype == "bool" else "real"


def value_text(value: float, numbers: Numbers = "real", digits: int = 4) -> str:
    """A value as what it is: ``"1.234e4"``, the integer ``"12,345"`` with every digit, or ``"true"``."""
    if numbers == "boolean" and value in {0, 1}:
        return "true" if value else "false"
    if numbers == "integer" and abs(value) < 2**53 and value == int(value):
        return f"{int(value):,}".replace("-", MINUS)
    return number(value, digits)


def value_range(low: float, high: float, digits: int = 3, numbers: Numbers = "real") -> str:
    """The range of a channel: ``"0 … 3.5"``, ``"constant 7"``, or that it has no finite values (NaN limits)."""
    if math.isnan(low):
        return NO_FINITE
    if low == high:
        return f"constant {value_text(low, numbers, digits)}"
    return f"{value_text(low, numbers, digits)} … {value_text(high, numbers, digits)}"


def fitting_range(low: float, high: float, characters: int, numbers: Numbers = "real") -> str:
    """The range of a channel with as many significant digits, 3 to 1, as fit; a constant at last without the word."""
    texts = [value_range(low, high, 3, numbers), *(value_range(low, high, digits) for digits in (3, 2, 1))]
    if low == high:
        texts.append(number(low, 2))
    return next((text for text in texts if len(text) <= characters), texts[-1])
