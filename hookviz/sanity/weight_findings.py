"""What a network's parameters say by themselves, before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from hookviz.hooks import PrunedParameter, pruning_report
from hookviz.hooks.names import LayerNames
from hookviz.sanity.findings import Finding, Severity, at_start, counted, named, percent
from hookviz.sanity.initial_values import initial_distribution
from hookviz.sanity.thresholds import Thresholds

_FEWEST_NORMS = 4

_MOSTLY = 0.9
"""Share of layers at their initial values from which on it is the network that is untrained."""


def weight_findings(module: nn.Module, twin: nn.Module | None, thresholds: Thresholds) -> list[Finding]:
    """Everything found in parameters and buffers; ``twin`` is the same network untrained, where it can be had."""
    layers = {name: layer for name, layer in LayerNames(module).items() if _own_parameters(layer)}
    return [
        *_nonfinite(layers),
        *_initial(layers, {} if twin is None else dict(twin.named_modules()), thresholds),
        *_zero_filters(module, thresholds),
        *_norm_scales(layers, thresholds),
    ]


def is_untrained(findings: Sequence[Finding]) -> bool:
    """Whether they say that the whole network is."""
    return any(one.kind == "untrained" for one in findings)


def _own_parameters(layer: nn.Module) -> list[Tensor]:
    return [one for one in layer.parameters(recurse=False) if not is_lazy(one) and not one.is_meta]


def _nonfinite(layers: dict[str, nn.Module]) -> Iterator[Finding]:
    for name, layer in layers.items():
        for own, tensor in (*layer.named_parameters(recurse=False), *layer.named_buffers(recurse=False)):
            if is_lazy(tensor) or not tensor.is_floating_point():
                continue
            bad = int((~torch.isfinite(tensor)).sum())
            if bad:
                nan = int(torch.isnan(tensor).sum())
                kinds = " and ".join(filter(None, ("NaN" if nan else "", "infinite" if bad > nan else "")))
                yield Finding(
                    "error",
                    "weights",
                    "nonfinite_parameter",
                    f"`{own}` of {named([name])} holds {counted(bad, 'value')} (of {tensor.numel():,}) that "
                    f"{'is' if bad == 1 else 'are'} {kinds}.",
                    "Whatever these values meet becomes NaN too, and so does the answer.",
                    "Load the checkpoint again; if it is in the file, take one from before training diverged.",
                    (name,),
                    amount=bad,
                    threshold=0,
                )


def _initial(layers: dict[str, nn.Module], twins: dict[str, nn.Module], thresholds: Thresholds) -> Iterator[Finding]:
    judged = {name: initial_distribution(layer, twins.get(name), thresholds) for name, layer in layers.items()}
    initial = [name for name, words in judged.items() if words]
    weighty = [name for name in judged if _is_weighty(layers[name])]
    initial_weighty = [name for name in weighty if judged[name]]
    if weighty and len(initial_weighty) >= _MOSTLY * len(weighty):
        yield Finding(
            "warning",
            "weights",
            "untrained",
            f"This network is untrained: {_all(len(initial_weighty), len(weighty))} with weights still "
            f"{'has' if len(initial_weighty) == 1 else 'have'} the random values that they were built with.",
            "What it answers means nothing, and what its layers show is chance.",
            "Load trained weights; if you did, check that their names fit (strict=True) and that the file is the one.",
            (),
            amount=len(initial_weighty) / len(weighty),
            threshold=_MOSTLY,
        )
        return
    for name in initial:
        yield Finding(
            "warning",
            "weights",
            "never_loaded",
            f"{at_start(name)} was never trained or loaded: its values are still its initial ones "
            f"({judged[name]}), while other layers are trained.",
            "It passes on noise of the right size, so nothing looks broken and the answer is wrong all the same.",
            "Look whether the checkpoint has this layer under another name, and load with strict=True.",
            (name,),
        )


def _is_weighty(layer: nn.Module) -> bool:
    weight = getattr(layer, "weight", None)
    return isinstance(weight, Tensor) and weight.ndim >= 2 and weight.numel() >= 256


def _all(some: int, count: int) -> str:
    return f"all {counted(count, 'layer')}" if some == count else f"{some:,} of {counted(count, 'layer')}"


def _zero_filters(module: nn.Module, thresholds: Thresholds) -> Iterator[Finding]:
    few: dict[str, tuple[PrunedParameter, int]] = {}
    for one in pruning_report(module).parameters:
        rows = _rows(module, one.layer)
        if one.parameter != "weight" or not one.zeros or not rows:
            continue
        if one.state == "mask":
            yield _pruned(one)
        elif one.zeros == one.count:
            yield _all_zero(one)
        elif len(one.outputs_gone) >= thresholds.zero_filters * rows:
            yield _some_zero({one.layer: (one, rows)}, "warning", thresholds)
        elif one.outputs_gone:
            few[one.layer] = one, rows
    if few:
        yield _some_zero(few, "note", thresholds)


def _pruned(one: PrunedParameter) -> Finding:
    return Finding(
        "note",
        "weights",
        "pruned",
        f"{at_start(one.layer)} is pruned: its mask switches off {percent(one.sparsity)} of its weights.",
        "It computes with the mask; the stored weights say something else.",
        "Nothing, if it is meant; torch.nn.utils.prune.remove makes it permanent.",
        (one.layer,),
        amount=one.sparsity,
        channels=one.outputs_gone[:100],
    )


def _all_zero(one: PrunedParameter) -> Finding:
    return Finding(
        "error",
        "weights",
        "zero_layer",
        f"Every weight of {named([one.layer])} is zero.",
        "Its output does not depend on the image any more, nor does anything that only hangs on it.",
        "Load the checkpoint again, or look for code that zeroes weights.",
        (one.layer,),
        amount=1.0,
        threshold=0.0,
    )


def _some_zero(found: dict[str, tuple[PrunedParameter, int]], severity: Severity, thresholds: Thresholds) -> Finding:
    """Filters without weights: of one layer where they are many, of all layers together where they are few."""
    shares = {layer: len(one.outputs_gone) / rows for layer, (one, rows) in found.items()}
    layers = sorted(found, key=lambda layer: -shares[layer])
    count = sum(len(one.outputs_gone) for one, _ in found.values())
    one, rows = found[layers[0]]
    of = f" (of {rows:,})" if len(layers) == 1 else f", at most {percent(shares[layers[0]])} of a layer"
    return Finding(
        severity,
        "weights",
        "zero_filters",
        f"{counted(count, 'filter')} of {named(layers)} {'has' if count == 1 else 'have'} no weight but zeros{of}.",
        "These channels say the same whatever the image.",
        "Nothing, if the network was pruned; otherwise compare with the original checkpoint.",
        tuple(layers),
        amount=shares[layers[0]],
        threshold=thresholds.zero_filters,
        channels=one.outputs_gone[:100],
    )


def _rows(module: nn.Module, layer: str) -> int:
    weight = getattr(LayerNames(module)[layer], "weight", None)
    return weight.shape[0] if isinstance(weight, Tensor) and weight.ndim > 1 else 0


def _norm_scales(layers: dict[str, nn.Module], thresholds: Thresholds) -> Iterator[Finding]:
    """Norms whose scale is far from that of all others: what they give out, no gain over what came in tells."""
    weights = {name: getattr(layer, "weight", None) for name, layer in layers.items()}
    scales = {
        name: float(weight.detach().double().square().mean().sqrt())
        for name, weight in weights.items()
        if isinstance(weight, Tensor) and weight.ndim == 1 and weight.numel() and weight.is_floating_point()
    }
    known = [one for one in scales.values() if 0 < one < float("inf")]
    if len(known) < _FEWEST_NORMS:
        return
    usual = median(known)
    for name, scale in scales.items():
        if scale >= usual * thresholds.gain_against_peers:
            yield Finding(
                "warning",
                "weights",
                "norm_scale",
                f"The scale of {named([name])} is {scale / usual:,.0f} times the median of the network's norms.",
                "Everything behind it is driven by this layer alone.",
                "Compare with the original checkpoint; look for a factor applied twice.",
                (name,),
                amount=scale / usual,
                threshold=thresholds.gain_against_peers,
            )
