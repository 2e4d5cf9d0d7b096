"""The command line: the page's answers from a shell."""

from __future__ import annotations

from hookviz.cli.run import main

__all__ = ["main"]
