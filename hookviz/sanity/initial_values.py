"""Whether weights may still be the random ones that a layer was built with.

Two questions, both must be answered with yes: are the values distributed as some usual initialization has them, and are
they without any structure, as if drawn one by one? Short training hardly changes the distribution of a large layer, but
its gradients are of low rank, which shows in the largest singular value (Martin and Mahoney, "Implicit
Self-Regularization in Deep Neural Networks", 2021). What that would be without structure, the same values shuffled say.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from hookviz.sanity.thresholds import Thresholds

FEWEST = 256
"""Values; with fewer, neither question has an answer."""

_MOST = 2**17
"""Values looked at, evenly spaced."""

_CUT = 0.87962566103423978
"""The standard deviation of a normal distribution that is cut off at two of its own."""

_LARGEST_MATRIX = 512, 1024
_SHUFFLES = 8
_STEPS = 40


def initial_distribution(layer: nn.Module, thresholds: Thresholds) -> str:
    """The distribution that the weights of a layer may still come from, in words; ``""`` where training shows."""
    weight = getattr(layer, "weight", None)
    if not isinstance(weight, Tensor) or weight.is_meta or not weight.is_floating_point():
        return ""
    if weight.ndim < 2:
        return _initial_norm(layer, weight)
    values = weight.detach().double().cpu()
    if values.numel() < FEWEST or not bool(torch.isfinite(values).all()):
        return ""
    if float(values.min()) == float(values.max()):
        return ""
    few = np.sort(values.flatten()[:: -(-values.numel() // _MOST)].numpy())
    for words, cumulative in _distributions(tuple(weight.shape), few):
        if _probability(few, cumulative) > thresholds.like_initial:
            return words if _structure(values.flatten(1)) < thresholds.structure else ""
    return ""


def _initial_norm(layer: nn.Module, weight: Tensor) -> str:
    bias, mean, variance = (getattr(layer, name, None) for name in ("bias", "running_mean", "running_var"))
    same = bool((weight == 1).all()) and (bias is None or bool((bias == 0).all()))
    if mean is not None and variance is not None:
        return "mean 0, variance 1, scale 1, shift 0" if same and _is(mean, 0) and _is(variance, 1) else ""
    return "scale 1, shift 0" if same and weight.ndim == 1 and bias is not None else ""


def _is(tensor: Tensor, value: float) -> bool:
    return bool((tensor == value).all())


def _distributions(shape: tuple[int, ...], values: npt.NDArray[np.float64]) -> Iterator[tuple[str, npt.NDArray[np.float64]]]:
    """Each usual initialization for such a weight, with what it makes of the sorted values: their shares from below."""
    field = math.prod(shape[2:])
    into, out = shape[1] * field, shape[0] * field
    both = into + out
    for words, bound in (
        ("uniform, 1/√fan-in (torch's default)", 1 / math.sqrt(into)),
        ("uniform, √(6/(fan-in + fan-out)) (Xavier)", math.sqrt(6 / both)),
        ("uniform, √(6/fan-in) (He)", math.sqrt(6 / into)),
        ("uniform, √(6/fan-out) (He)", math.sqrt(6 / out)),
        ("uniform, √(3/fan-in) (LeCun)", math.sqrt(3 / into)),
        ("uniform, 1/√(fan-in + fan-out)", 1 / math.sqrt(both)),
        ("uniform, 1/√fan-out", 1 / math.sqrt(shape[0])),
        ("uniform, 1/√(inputs + outputs)", 1 / math.sqrt(shape[0] + shape[1])),
    ):
        if -bound * 1.0001 <= values[0] and values[-1] <= bound * 1.0001:
            yield words, np.clip((values + bound) / (2 * bound), 0, 1)
    for words, deviation in (
        ("normal, √(2/fan-out) (He)", math.sqrt(2 / out)),
        ("normal, √(2/outputs of a group) (He)", math.sqrt(2 / field)),
        ("normal, √(2/fan-in) (He)", math.sqrt(2 / into)),
        ("normal, √(1/fan-in) (LeCun)", math.sqrt(1 / into)),
        ("normal, √(2/(fan-in + fan-out)) (Xavier)", math.sqrt(2 / both)),
        *((f"normal, {one}", one) for one in (0.001, 0.01, 0.02, 0.05, 0.1, 1.0)),
    ):
        yield words, _normal_below(values / deviation)
    yield "normal, √(1/fan-in), cut at two deviations (LeCun)", _cut_normal_below(values / (math.sqrt(1 / into) / _CUT))


def _normal_below(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return 0.5 * (1 + torch.erf(torch.from_numpy(values) / math.sqrt(2)).numpy())


def _cut_normal_below(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    low, high = _normal_below(np.array([-2.0, 2.0]))
    return np.clip((_normal_below(values) - low) / (high - low), 0, 1)


def _probability(values: npt.NDArray[np.float64], cumulative: npt.NDArray[np.float64]) -> float:
    """How probable a distance as large as this one is (Kolmogorov and Smirnov), by Stephens' formula."""
    count = len(values)
    steps = np.arange(count)
    distance = float(max((cumulative - steps / count).max(), ((steps + 1) / count - cumulative).max()))
    scaled = (math.sqrt(count) + 0.12 + 0.11 / math.sqrt(count)) * distance
    terms = [(-1) ** (k - 1) * math.exp(-2 * (k * scaled) ** 2) for k in range(1, 101)]
    return 1.0 if scaled < 0.2 else min(1.0, max(0.0, 2 * sum(terms)))


def _structure(matrix: Tensor) -> float:
    """By how many deviations the largest singular value exceeds those of the same values shuffled.

    Orthogonal weights have none that is large, and count as without structure.
    """
    rows, columns = _LARGEST_MATRIX
    part = matrix[:rows, :columns].float()
    if min(part.shape) < 4:
        return 0.0
    generator = torch.Generator().manual_seed(0)
    shuffled = [
        _largest_singular_value(part.flatten()[torch.randperm(part.numel(), generator=generator)].view(part.shape))
        for _ in range(_SHUFFLES)
    ]
    spread = max(float(np.std(shuffled)), 0.002 * float(np.mean(shuffled)))
    return (_largest_singular_value(part) - float(np.mean(shuffled))) / spread


def _largest_singular_value(matrix: Tensor) -> float:
    vector = torch.ones(matrix.shape[1]) + torch.linspace(-0.5, 0.5, matrix.shape[1])
    for _ in range(_STEPS):
        vector = matrix.T @ (matrix @ vector)
        vector = vector / vector.norm().clamp_min(1e-30)
    return float((matrix @ vector).norm())
