"""What classes are called."""

from __future__ import annotations

from collections.abc import Sequence


def class_title(index: int, categories: Sequence[str]) -> str:
    """The name of a class, or its number where it has none."""
    return categories[index] if 0 <= index < len(categories) else f"class {index}"
