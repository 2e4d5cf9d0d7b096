"""Trying hooks on a network: what they are given, what they change, and the code that does the same."""

from hookviz.hook_lab.articles import NOTES, Note
from hookviz.hook_lab.code import hook_code
from hookviz.hook_lab.cost import LabCost, measure_cost
from hookviz.hook_lab.experiment import (
    CHOOSE_CHANNELS,
    SIGNATURES,
    STRENGTHS,
    Action,
    Experiment,
    HookLabError,
    LabKind,
    LossChoice,
    LossKind,
)
from hookviz.hook_lab.gradients import ClippedNorms, LayerGradient, clipped_norms, layer_gradient, measure_flow
from hookviz.hook_lab.lint import HookSurvey, Remark, survey_hooks
from hookviz.hook_lab.loading_code import IMAGE_FILE, OWN_WEIGHTS_FILE, LoadingCode, loading_code
from hookviz.hook_lab.trial import Outcome, Trial, list_firings, try_hook
from hookviz.hook_lab.witness import Seen

__all__ = [
    "CHOOSE_CHANNELS",
    "IMAGE_FILE",
    "NOTES",
    "OWN_WEIGHTS_FILE",
    "SIGNATURES",
    "STRENGTHS",
    "Action",
    "ClippedNorms",
    "Experiment",
    "HookLabError",
    "HookSurvey",
    "LabCost",
    "LabKind",
    "LayerGradient",
    "LoadingCode",
    "LossChoice",
    "LossKind",
    "Note",
    "Outcome",
    "Remark",
    "Seen",
    "Trial",
    "clipped_norms",
    "hook_code",
    "layer_gradient",
    "list_firings",
    "loading_code",
    "measure_cost",
    "measure_flow",
    "survey_hooks",
    "try_hook",
]
