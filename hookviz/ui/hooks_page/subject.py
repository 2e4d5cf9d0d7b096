"""What the page experiments on, and the results that sessions share, each within a stated bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st
from torch import Tensor

from hookviz.class_names import numbered_class_names
from hookviz.hook_lab import (
    ClippedNorms,
    Experiment,
    HookSurvey,
    LabCost,
    LayerGradient,
    LossChoice,
    Trial,
    clipped_norms,
    layer_gradient,
    list_firings,
    measure_cost,
    measure_flow,
    survey_hooks,
    try_hook,
)
from hookviz.hooks import Firing, GradientFlow
from hookviz.models import Model
from hookviz.types import LayerInfo


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """A model, its input and its layers; ``key`` is what model and image are known by.

    ``own_file`` says that the weights are a visitor's own.
    """

    key: tuple[str, str]
    model: Model
    batch: Tensor
    layers: tuple[LayerInfo, ...]
    own_file: bool

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What the network is called with."""
        return self.model.arguments(self.batch)

    def info(self, layer: str) -> LayerInfo:
        """What is known of a layer."""
        return next(info for info in self.layers if info.name == layer)

    def class_names(self, count: int) -> tuple[str, ...]:
        """Names for so many classes."""
        names = self.model.categories
        return names if len(names) == count else tuple(numbered_class_names(count))


# In what follows, Streamlit's caches tell calls apart by the arguments without an underscore. Everything runs on copies
# of the shared network.


@st.cache_resource(show_spinner=False, max_entries=8)
def get_trial(key: tuple[str, str], experiment: Experiment, _subject: Subject) -> Trial:  # noqa: ARG001  # the key
    """The network without and with a hook."""
    return try_hook(_subject.model.module, _subject.arguments, experiment)


@st.cache_resource(show_spinner=False, max_entries=8)
def get_firings(
    key: tuple[str, str],  # noqa: ARG001  # what the cache knows it by
    backward: bool,  # noqa: ARG001  # the same
    loss: LossChoice,  # noqa: ARG001  # the same
    _experiment: Experiment,
    _subject: Subject,
) -> list[Firing]:
    """Every firing of a forward, or of a forward and a backward pass."""
    return list_firings(_subject.model.module, _subject.arguments, _experiment)


@st.cache_resource(show_spinner=False, max_entries=8)
def get_cost(key: tuple[str, str], experiment: Experiment, _subject: Subject) -> LabCost:  # noqa: ARG001  # the key
    """What a hook costs, measured once."""
    return measure_cost(_subject.model.module, _subject.arguments, experiment)


@st.cache_resource(show_spinner=False, max_entries=8)
def get_flow(key: tuple[str, str], loss: LossChoice, _subject: Subject) -> GradientFlow:  # noqa: ARG001  # the key
    """The gradient of a class or loss at every parameter."""
    return measure_flow(_subject.model.module, _subject.arguments, loss)


@st.cache_resource(show_spinner=False, max_entries=4)
def get_layer_gradient(
    key: tuple[str, str],  # noqa: ARG001  # what the cache knows it by
    loss: LossChoice,
    layer: str,
    _subject: Subject,
) -> LayerGradient:
    """A layer's activation and the gradient that reached it."""
    return layer_gradient(_subject.model.module, _subject.arguments, loss, layer)


@st.cache_resource(show_spinner=False, max_entries=8)
def get_clipped(key: tuple[str, str], loss: LossChoice, max_norm: float, _subject: Subject) -> ClippedNorms:  # noqa: ARG001  # the key
    """Each layer's gradient without and with clipping."""
    return clipped_norms(_subject.model.module, _subject.arguments, loss, max_norm=max_norm)


@st.cache_resource(show_spinner=False, max_entries=4)
def get_survey(key: tuple[str, str], _subject: Subject) -> HookSurvey:  # noqa: ARG001  # the key
    """What sits on the network."""
    return survey_hooks(_subject.model.module, _subject.arguments)
