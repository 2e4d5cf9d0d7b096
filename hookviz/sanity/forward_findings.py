"""What a forward itself brings to light: that it breaks off, or where NaN and infinities begin."""

from __future__ import annotations

from typing import Any

from torch import nn

from hookviz.hooks import NonfiniteSite, find_nonfinite
from hookviz.sanity.findings import Finding, at_start


def failed_finding(image: str, said: str, layer: str | None, *, training: bool) -> Finding:
    """The network cannot run on an image; ``said`` is why, and ``layer`` where, if that is known."""
    return Finding(
        "error",
        "layers",
        "forward_failed",
        f"The network {'in train mode ' if training else ''}cannot run on `{image}`: {said}.",
        "What it computes there is not known.",
        "Call model.eval() before you use the network."
        if training
        else "Compare the input's shape, range and dtype with what the network was built for.",
        () if layer is None else (layer,),
    )


def nonfinite_finding(private: nn.Module, arguments: tuple[Any, ...], image: str) -> Finding | None:
    """Where NaN or infinity begins on an image that shows some; None where the input itself brought them."""
    first = find_nonfinite(private, *arguments).first
    if first is None or first.role == "input":
        return None
    overflows = first.nan == 0 and _dtype(private) == "float16"
    cause = f"because of its parameter `{first.parameter}`" if first.parameter else "from finite values"
    return Finding(
        "error",
        "layers",
        "nonfinite",
        f"{at_start(first.layer)} is the first to give values that are not finite: {_counts(first)} on `{image}`, "
        f"{cause}." + (" It overflows half precision, whose largest number is 65,504." if overflows else ""),
        "Everything behind it is lost, the answer too.",
        "Keep this layer in float32 or use bfloat16, which has float32's range."
        if overflows
        else "Look at this layer's weights and at what comes in: a division by zero, a root or logarithm of nothing, "
        "or an overflow.",
        (first.layer,),
        amount=float(first.nan + first.posinf + first.neginf),
        threshold=0.0,
    )


def _counts(site: NonfiniteSite) -> str:
    counts = ((site.nan, "NaN"), (site.posinf, "+Inf"), (site.neginf, "−Inf"))
    return ", ".join(f"{count:,} {name}" for count, name in counts if count)


def _dtype(module: nn.Module) -> str:
    one = next(iter(module.parameters()), None)
    return "" if one is None else str(one.dtype).removeprefix("torch.")
