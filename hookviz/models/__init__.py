"""The catalogue of networks: which there are, and each with its own preprocessing, class names and origin."""

from __future__ import annotations

from hookviz.models.catalogue import list_models, list_weights, load_model
from hookviz.models.drawing import draw
from hookviz.models.model import Model
from hookviz.models.movie import load_frames
from hookviz.models.own import Network
from hookviz.models.recipe import Recipe
from hookviz.models.results import ClassMap, Detections, Flow

__all__ = [
    "ClassMap",
    "Detections",
    "Flow",
    "Model",
    "Network",
    "Recipe",
    "draw",
    "list_models",
    "list_weights",
    "load_frames",
    "load_model",
]
