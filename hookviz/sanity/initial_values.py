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

Values = npt.NDArray[np.float64]

FEWEST = 256
"""Values; with fewer, neither question has an answer."""

_MOST = 2**17
"""Values looked at, evenly spaced."""

_PLAUSIBLE = 0.01
"""Probability above which an untrained layer's values name their distribution."""

TORCH_DEFAULT = "uniform, 1/√fan-in (torch's default)"

_CUT = 0.87962566103423978
"""The standard deviation of a normal distribution that is cut off at two of its own."""

_LARGEST_MATRIX = 512, 1024
_SHUFFLES, _FEW_SHUFFLES = 32, 8
"""For small matrices and for large ones, whose largest singular values lie closer together."""

_SMALL = 2**15
_STEPS = 40


def initial_distribution(layer: nn.Module, twin: nn.Module | None, thresholds: Thresholds) -> str:
    """The distribution that the weights of a layer may still come from, in words; ``""`` where training shows.

    ``twin`` is the same layer of the same network as it is built, whose distribution is looked for; torch's own default
    always is, since it is what a layer has that somebody put in.
    """
    values = _values(layer)
    if values is None:
        return _initial_norm(layer)
    shape, few = tuple(values.shape), _few(values)
    wanted = {TORCH_DEFAULT} | _distributions_of(twin, shape)
    for words, cumulative in _distributions(shape, few):
        if words in wanted and _probability(few, cumulative) > thresholds.like_initial:
            return words if _structure(values.flatten(1)) < thresholds.structure else ""
    return ""


def _distributions_of(twin: nn.Module | None, shape: tuple[int, ...]) -> set[str]:
    """What the values of an untrained layer may come from."""
    values = None if twin is None else _values(twin)
    if values is None or tuple(values.shape) != shape:
        return set()
    few = _few(values)
    return {words for words, cumulative in _distributions(shape, few) if _probability(few, cumulative) > _PLAUSIBLE}


def _values(layer: nn.Module) -> Tensor | None:
    """The weights where they are many enough, finite and varied; None otherwise."""
    weight = getattr(layer, "weight", None)
    if not isinstance(weight, Tensor) or weight.ndim < 2 or weight.is_meta or not weight.is_floating_point():
        return None
    values = weight.detach().double().cpu()
    if values.numel() < FEWEST or not bool(torch.isfinite(values).all()) or bool((values == values.flatten()[0]).all()):
        return None
    return values


def _few(values: Tensor) -> Values:
    return np.sort(values.flatten()[:: -(-values.numel() // _MOST)].numpy())


def _initial_norm(layer: nn.Module) -> str:
    weight, bias = getattr(layer, "weight", None), getattr(layer, "bias", None)
    if not isinstance(weight, Tensor) or not isinstance(bias, Tensor) or weight.ndim != 1 or weight.is_meta:
        return ""
    mean, variance = getattr(layer, "running_mean", None), getattr(layer, "running_var", None)
    if not (_is(weight, 1) and _is(bias, 0)):
        return ""
    if mean is None or variance is None:
        return "scale 1, shift 0"
    return "mean 0, variance 1, scale 1, shift 0" if _is(mean, 0) and _is(variance, 1) else ""


def _is(tensor: Tensor, value: float) -> bool:
    return bool((tensor == value).all())


def _distributions(shape: tuple[int, ...], values: Values) -> Iterator[tuple[str, Values]]:
    """Each usual initialization for such a weight, with what it makes of the sorted values: their shares from below."""
    field = math.prod(shape[2:])
    into, out = shape[1] * field, shape[0] * field
    both = into + out
    for words, bound in (
        (TORCH_DEFAULT, 1 / math.sqrt(into)),
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


def _normal_below(values: Values) -> Values:
    below: Values = 0.5 * (1 + torch.erf(torch.from_numpy(values) / math.sqrt(2)).numpy())
    return below


def _cut_normal_below(values: Values) -> Values:
    low, high = _normal_below(np.array([-2.0, 2.0]))
    below: Values = np.clip((_normal_below(values) - low) / (high - low), 0, 1)
    return below


def _probability(values: Values, cumulative: Values) -> float:
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
        for _ in range(_SHUFFLES if part.numel() < _SMALL else _FEW_SHUFFLES)
    ]
    spread = max(float(np.std(shuffled)), 0.002 * float(np.mean(shuffled)))
    return (_largest_singular_value(part) - float(np.mean(shuffled))) / spread


def _largest_singular_value(matrix: Tensor) -> float:
    vector = torch.ones(matrix.shape[1]) + torch.linspace(-0.5, 0.5, matrix.shape[1])
    for _ in range(_STEPS):
        vector = matrix.T @ (matrix @ vector)
        vector = vector / vector.norm().clamp_min(1e-30)
    return float((matrix @ vector).norm())
