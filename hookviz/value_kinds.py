"""The real numbers that a tensor can be shown as: of complex and quantized ones there are several."""

from __future__ import annotations

import dataclasses

import torch

from hookviz.errors import LayoutError
from hookviz.numeric import dense, dtype_name
from hookviz.statistics import summarize
from hookviz.types import Summary

COMPLEX = ("magnitude", "phase", "real part", "imaginary part")
QUANTIZED = ("dequantized value", "stored integer")
INTEGERS = frozenset({"uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"})

_PHASE_NOTE = "phase in radians from −π to π, where both ends mean the same"


def value_kinds(tensor: torch.Tensor) -> tuple[str, ...]:
    """What a tensor's numbers can be shown as, the usual one first: ``("value",)`` for most."""
    if tensor.is_quantized:
        return QUANTIZED
    return COMPLEX if tensor.is_complex() else ("value",)


def kind_of_values(tensor: torch.Tensor, kind: str = "auto") -> str:
    """The kind itself, and for ``"auto"`` the first of :func:`value_kinds`.

    Raises:
        LayoutError: such a tensor has no such numbers.
    """
    kinds = value_kinds(tensor)
    if kind != "auto" and kind not in kinds:
        there = ", ".join(kinds)
        raise LayoutError(
            f"A tensor of dtype {dtype_name(tensor)} has no {kind!r} to show: choose 'auto' or one of {there}."
        )
    return kinds[0] if kind == "auto" else kind


def as_kind(tensor: torch.Tensor, kind: str = "auto") -> torch.Tensor:
    """A dense tensor of the same shape, with the numbers to be shown; a magnitude is still complex.

    Args:
        tensor: any dtype and device; it and its graph are left alone.
        kind: one of ``value_kinds(tensor)``, or ``"auto"`` for the first.

    Raises:
        LayoutError: such a tensor has no such numbers.
        HookvizError: it has no numbers at all (meta, fake).
    """
    used, plain = kind_of_values(tensor, kind), dense(tensor)
    if used == value_kinds(tensor)[0]:
        return plain
    if used == "stored integer":
        return tensor.detach().int_repr()
    wide = plain.cpu().to(torch.complex128).resolve_conj()  # not every accelerator has 64-bit floats
    return wide.angle() if used == "phase" else wide.real if used == "real part" else wide.imag


def kind_note(tensor: torch.Tensor, kind: str) -> str:
    """What a reader has to know of such numbers; ``""`` for most."""
    return quantization_note(tensor) or (_PHASE_NOTE if kind == "phase" else "")


def quantization_note(tensor: torch.Tensor) -> str:
    """How stored integers become values, (integer − zero point) × scale; ``""`` for a tensor that is not quantized."""
    if not tensor.is_quantized:
        return ""
    if tensor.qscheme() in {torch.per_tensor_affine, torch.per_tensor_symmetric}:
        return f"quantized with scale {tensor.q_scale():.4g} and zero point {tensor.q_zero_point()}"
    scales, points = tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()
    return (
        f"quantized per channel along axis {tensor.q_per_channel_axis()}: {_span(scales, 'scale')}, "
        f"{_span(points, 'zero point')}"
    )


def summarize_kind(tensor: torch.Tensor, kind: str = "auto") -> Summary:
    """What :func:`hookviz.statistics.summarize` gives, of these numbers of a tensor; ``dtype`` is the tensor's own."""
    used = kind_of_values(tensor, kind)
    if used == value_kinds(tensor)[0]:
        return summarize(tensor)
    return dataclasses.replace(summarize(as_kind(tensor, used)), dtype=dtype_name(tensor), shows=used)


def is_whole(dtype: str, kind: str) -> bool:
    """Whether such numbers are integers, so that digits behind a point would say what is not there."""
    return kind == "stored integer" or (kind == "value" and dtype in INTEGERS)


def _span(numbers: torch.Tensor, name: str) -> str:
    low, high = float(numbers.min()), float(numbers.max())
    return f"{name} {low:.4g}" if low == high else f"{name}s {low:.4g} to {high:.4g}"
