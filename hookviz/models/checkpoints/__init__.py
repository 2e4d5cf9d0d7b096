"""A person's own weights: read without running anything, compared key by key, and loaded whole or not at all."""

from __future__ import annotations

from hookviz.models.checkpoints.heads import fit_head
from hookviz.models.checkpoints.loading import CheckpointWarning, fill_from_checkpoint, load_checkpoint
from hookviz.models.checkpoints.matching import match_checkpoint
from hookviz.models.checkpoints.reading import SUFFIXES, read_checkpoint
from hookviz.models.checkpoints.report import CheckpointError, CheckpointReport

__all__ = [
    "SUFFIXES",
    "CheckpointError",
    "CheckpointReport",
    "CheckpointWarning",
    "fill_from_checkpoint",
    "fit_head",
    "load_checkpoint",
    "match_checkpoint",
    "read_checkpoint",
]
