"""See what a PyTorch vision network computes: every layer, every channel, exactly."""

from hookviz import views
from hookviz.errors import (
    AmbiguousCallError,
    GradientError,
    HookvizError,
    ImageError,
    KeepError,
    LayoutError,
    ModelError,
    NotRecordedError,
    UnknownLayerError,
    UnknownModelError,
    ViewError,
    WeightsUnavailableError,
)
from hookviz.hooks import (
    Call,
    LayerCalls,
    Overwrite,
    Recording,
    Run,
    attach,
    list_layers,
    list_operations,
    record,
    record_operations,
    watch_overwrites,
)
from hookviz.images import load_image
from hookviz.layout import channel_maps
from hookviz.models import Model, list_models, list_weights, load_model
from hookviz.samples import list_samples, load_sample
from hookviz.statistics import RunningSummary, summarize
from hookviz.types import ChannelMaps, ChannelStatistics, Histogram, LayerInfo, Prediction, Summary, TensorInfo

__all__ = [
    "AmbiguousCallError",
    "Call",
    "ChannelMaps",
    "ChannelStatistics",
    "GradientError",
    "Histogram",
    "HookvizError",
    "ImageError",
    "KeepError",
    "LayerCalls",
    "LayerInfo",
    "LayoutError",
    "Model",
    "ModelError",
    "NotRecordedError",
    "Overwrite",
    "Prediction",
    "Recording",
    "Run",
    "RunningSummary",
    "Summary",
    "TensorInfo",
    "UnknownLayerError",
    "UnknownModelError",
    "ViewError",
    "WeightsUnavailableError",
    "attach",
    "channel_maps",
    "list_layers",
    "list_models",
    "list_operations",
    "list_samples",
    "list_weights",
    "load_image",
    "load_model",
    "load_sample",
    "record",
    "record_operations",
    "summarize",
    "views",
    "watch_overwrites",
]
