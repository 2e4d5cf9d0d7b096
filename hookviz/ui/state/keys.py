"""Names of what the page remembers in more than one of its rooms."""

from __future__ import annotations

MODEL, WEIGHTS, SAMPLE, UPLOAD, CAMERA = "model", "weights", "sample", "upload", "camera"
LAYERS, TREE, SORT, SCALE, CMAP, ROBUST = "layers", "layer-tree", "sort", "scale", "cmap", "robust"

ASKED_LAYERS = "layers asked for in the address"
SOURCE = "image source"

DEFAULT_WEIGHTS = "default"
