"""Checking whether a network is all right, and the way it is fed."""

from hookviz.sanity.answers import Answer, Steadiness
from hookviz.sanity.findings import Finding, Severity
from hookviz.sanity.identity import Environment, NetworkIdentity
from hookviz.sanity.input_trials import InputTrial
from hookviz.sanity.inspection import Inspection
from hookviz.sanity.items import Item, items_of
from hookviz.sanity.likeness import LayerLikeness, compare_layers, linear_cka
from hookviz.sanity.report import CheckedImage, Compared, LayerRow, Report, Unreadable
from hookviz.sanity.run import check
from hookviz.sanity.thresholds import Thresholds

__all__ = [
    "Answer",
    "CheckedImage",
    "Compared",
    "Environment",
    "Finding",
    "InputTrial",
    "Inspection",
    "Item",
    "LayerLikeness",
    "LayerRow",
    "NetworkIdentity",
    "Report",
    "Severity",
    "Steadiness",
    "Thresholds",
    "Unreadable",
    "check",
    "compare_layers",
    "items_of",
    "linear_cka",
]
