"""The colours of figures, light and dark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from hookviz.errors import ViewError

ThemeName: TypeAlias = Literal["light", "dark"]


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours by what they are for."""

    background: str
    ink: str
    quiet: str
    line: str
    bars: str
    accent: str
    warning: str


_THEMES = {
    "light": Theme("#ffffff", "#1e293b", "#64748b", "#cbd5e1", "#a3b1c6", "#d9480f", "#b4007d"),
    "dark": Theme("#0e1117", "#f1f5f9", "#94a3b8", "#475569", "#5b6b84", "#ff9457", "#ff7ad9"),
}


def theme_colours(name: str) -> Theme:
    """The theme of that name.

    Raises:
        ViewError: Names the themes there are.
    """
    if name not in _THEMES:
        raise ViewError(f"no theme {name!r}; choose one of {', '.join(_THEMES)}")
    return _THEMES[name]
