"""The name that the catalogue knows :mod:`hookviz.models.checkpoints` by."""

from __future__ import annotations

from hookviz.models.checkpoints import SUFFIXES, load_checkpoint

__all__ = ["SUFFIXES", "load_checkpoint"]
