"""Everything hookviz raises on purpose: one sentence that says what to do next."""

from __future__ import annotations


class HookvizError(Exception):
    """Base of every error hookviz raises; ``str(error)`` is one sentence for a reader, not a developer."""


class ImageError(HookvizError):
    """A file that cannot become an image."""


class ModelError(HookvizError):
    """A model or its weights that cannot be had."""


class UnknownModelError(ModelError, KeyError):
    """A model name that is not in the catalogue."""

    __str__ = Exception.__str__  # KeyError would print the sentence in quotes


class WeightsUnavailableError(ModelError):
    """Weights that could not be downloaded or read; the same model can be had untrained."""


class UnknownLayerError(HookvizError, KeyError):
    """A layer name, glob or type that matches nothing, or a chosen layer that never ran."""

    __str__ = Exception.__str__  # KeyError would print the sentence in quotes


class AmbiguousCallError(HookvizError):
    """A layer that ran more than once, asked for as if it had run once."""


class NotRecordedError(HookvizError):
    """A value that this recording was not asked to keep."""


class GradientError(HookvizError):
    """Gradients asked for where autograd cannot give any."""


class KeepError(HookvizError):
    """A ``keep`` function that failed, or that wrote into the tensor it was shown."""


class LayoutError(HookvizError, ValueError):
    """A layout that does not fit a tensor."""


class ViewError(HookvizError, ValueError):
    """A picture asked for with a setting that does not exist."""
