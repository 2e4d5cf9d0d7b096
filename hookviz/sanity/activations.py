"""What is known of activation functions: the ends of their ranges, and which of them rectify."""

from __future__ import annotations

import math

from torch import nn

RECTIFIERS = frozenset({"ReLU", "ReLU6", "relu", "relu_", "relu6", "threshold", "threshold_"})
"""Classes and functions that make everything negative zero, so that a channel can be switched off for good."""

ACTIVATION_FUNCTIONS = RECTIFIERS | {
    *("hardtanh", "hardtanh_", "tanh", "tanh_", "sigmoid", "sigmoid_", "gelu", "silu", "mish", "elu", "elu_"),
    *("leaky_relu", "leaky_relu_", "hardswish", "hardsigmoid", "softplus", "clamp", "clamp_"),
}
"""Functions watched where a network calls them outside a module."""

GATES = frozenset({"Sigmoid", "Hardsigmoid", "sigmoid", "sigmoid_", "hardsigmoid"})
"""Activations that gate other values, for which being at an end is nothing unusual."""

_SQUASHED = 0.99
"""Share of the range of Tanh and Sigmoid beyond which the slope is as good as zero."""


def activation_ends(module: nn.Module) -> tuple[float, float] | None:
    """From and up to where values of an activation stand at an end of its range; None where it has none.

    The lower end of a rectifier, zero, does not count: zeros are counted as such.
    """
    if isinstance(module, nn.ReLU6):
        return -math.inf, 6.0
    if isinstance(module, nn.Hardtanh):
        return (module.min_val if module.min_val < 0 else -math.inf), module.max_val
    if isinstance(module, nn.Tanh):
        return -_SQUASHED, _SQUASHED
    if isinstance(module, nn.Sigmoid):
        return 1 - _SQUASHED, _SQUASHED
    return None
