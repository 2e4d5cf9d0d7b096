"""Batch norms whose stored statistics do not fit what comes in, and layers that are not in eval mode."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn

from hookviz.hooks.names import LayerNames
from hookviz.sanity.channel_tally import ChannelTally
from hookviz.sanity.findings import Finding, counted, named
from hookviz.sanity.layer_stream import BATCH_NORM, LayerStream
from hookviz.sanity.thresholds import Thresholds

_RANDOM = ("Dropout", "AlphaDropout", "FeatureAlphaDropout", "DropPath", "StochasticDepth", "DropBlock")


@dataclass(frozen=True, slots=True)
class NormFit:
    """How what comes into a batch norm lies beside its stored statistics, as medians over channels.

    ``shift`` is the distance of the means in stored standard deviations, ``spread`` the factor between the variances, 1
    or more, ``ratio`` the same factor with its direction: above 1 where more comes in.
    """

    layer: str
    shift: float
    spread: float
    ratio: float


def norm_fit(layer: str, module: nn.Module, seen: ChannelTally) -> NormFit | None:
    """The fit of one batch norm; None where it stores no statistics, or nothing can be compared."""
    mean, variance = (_stored(module, name) for name in ("running_mean", "running_var"))
    if mean is None or variance is None or len(mean) != len(seen.values):
        return None
    known = (seen.values > 1) & np.isfinite(mean) & np.isfinite(variance) & (variance >= 0)
    if not known.any():
        return None
    eps = float(getattr(module, "eps", 1e-5))
    shift = np.abs(seen.mean - mean)[known] / np.sqrt(variance[known] + eps)
    ratio = np.log((seen.variance[known] + eps) / (variance[known] + eps))
    return NormFit(
        layer, float(np.median(shift)), float(np.exp(np.median(np.abs(ratio)))), float(np.exp(np.median(ratio)))
    )


def norm_fits(module: nn.Module, stream: LayerStream) -> list[NormFit]:
    """The fits of all batch norms, in the order of the run; ``module`` has the stored statistics."""
    names = LayerNames(module)
    fits = (
        norm_fit(place.layer, names[place.layer], tally.incoming_channels)
        for place, tally in stream.tallies.items()
        if tally.incoming_channels is not None
    )
    return [one for one in fits if one is not None]


def norm_findings(fits: list[NormFit], thresholds: Thresholds, *, explained: bool) -> Iterator[Finding]:
    """The first batch norm that what comes in does not fit, and how many follow.

    ``explained`` says that another finding is the cause, such as an input prepared otherwise; then it is a note.
    """
    limit_shift, limit_spread = thresholds.normalization_shift, thresholds.normalization_spread
    off = [one for one in fits if one.shift > limit_shift or one.spread > limit_spread]
    if not off:
        return
    first = off[0]
    more = f"; {counted(len(off) - 1, 'batch norm')} further on likewise" if len(off) > 1 else ""
    by_mean = first.shift > limit_shift
    how = (
        f"means lie {first.shift:.2g} stored standard deviations off"
        if by_mean
        else f"variances are {first.spread:.3g} times as {'large' if first.ratio > 1 else 'small'}"
    )
    yield Finding(
        "note" if explained else "warning",
        "layers",
        "norm_statistics",
        f"What comes into the batch norm {named([first.layer])} does not fit its stored statistics: {how} (median over "
        f"its channels){more}.",
        "It then normalises by numbers of other data, and all that follows works outside the range it was trained in.",
        "Prepare the images as in training; if they are, the statistics are not those of these weights.",
        tuple(one.layer for one in off),
        first.shift if by_mean else first.spread,
        limit_shift if by_mean else limit_spread,
    )


def mode_findings(module: nn.Module) -> Iterator[Finding]:
    """Layers in train mode that compute something else in it."""
    layers = LayerNames(module)
    norms = [name for name, one in layers.items() if isinstance(one, BATCH_NORM) and one.training]
    if norms:
        count = sum(isinstance(one, BATCH_NORM) for _, one in layers.items())
        yield Finding(
            "warning",
            "layers",
            "batch_norm_in_train_mode",
            f"{_how_many(len(norms), count, 'batch norm')} in train mode: {named(norms)}.",
            "They normalise by the statistics of this batch, so an image's answer depends on its company, and every "
            "forward changes the stored statistics.",
            "Call model.eval() before you use the network.",
            tuple(norms),
            amount=len(norms),
            threshold=0,
        )
    random = [name for name, one in layers.items() if one.training and _draws(one)]
    if random:
        count = sum(_draws(one) for _, one in layers.items())
        yield Finding(
            "warning",
            "layers",
            "dropout_on",
            f"{_how_many(len(random), count, 'dropout layer')} switched on: {named(random)}.",
            "They drop values at random, so the same image gets another answer every time.",
            "Call model.eval() before you use the network.",
            tuple(random),
            amount=len(random),
            threshold=0,
        )


def _draws(module: nn.Module) -> bool:
    chance = next((getattr(module, name, None) for name in ("p", "drop_prob") if hasattr(module, name)), None)
    return type(module).__name__.rstrip("123d").startswith(_RANDOM) and bool(chance)


def _how_many(some: int, count: int, word: str) -> str:
    if some == count:
        return f"The only {word} is" if count == 1 else f"All {counted(count, word)} are"
    return f"{some:,} of {counted(count, word)} {'is' if some == 1 else 'are'}"


def _stored(module: nn.Module, name: str) -> npt.NDArray[np.float64] | None:
    tensor = getattr(module, name, None)
    return tensor.detach().double().cpu().numpy() if isinstance(tensor, Tensor) else None
