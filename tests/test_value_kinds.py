from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from hookviz.errors import LayoutError
from hookviz.layout import axis_lengths, channel_maps
from hookviz.value_kinds import is_whole, summarize_kind, value_kinds

pytestmark = pytest.mark.filterwarnings("ignore:torch.quantize_per:UserWarning")

COMPLEX = torch.tensor([[[[3 + 4j, -2j], [-1 + 0j, 0j]]]])


def per_tensor() -> torch.Tensor:
    """Stored as 14, 10, 8, 9."""
    values = torch.tensor([[[[2.0, 0.0], [-1.0, -0.5]]]])
    return torch.quantize_per_tensor(values, 0.5, 10, torch.quint8)


def per_channel() -> torch.Tensor:
    scales, points = torch.tensor([0.5, 0.25]), torch.tensor([1, 3])
    return torch.quantize_per_channel(torch.ones(1, 2, 1, 1), scales, points, 1, torch.quint8)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("auto", [5, 2, 1, 0]),
        ("magnitude", [5, 2, 1, 0]),
        ("phase", [math.atan2(4, 3), -math.pi / 2, math.pi, 0]),
        ("real part", [3, 0, -1, 0]),
        ("imaginary part", [4, -2, 0, 0]),
    ],
)
def test_complex_numbers_have_four_faces(kind: str, expected: list[float]) -> None:
    """C30: none of them drops a part in silence."""
    maps = channel_maps(COMPLEX, shows=kind)
    np.testing.assert_array_equal(maps.maps.reshape(-1), np.array(expected, np.float32))
    assert maps.shows == ("magnitude" if kind == "auto" else kind)
    assert maps.dtype == "complex64"


def test_conjugates_and_half_complex_numbers_too() -> None:
    """C30: a lazy conjugate, and complex32."""
    assert channel_maps(COMPLEX.conj(), shows="imaginary part").maps.reshape(-1).tolist() == [-4, 2, 0, 0]
    half = channel_maps(COMPLEX.to(torch.complex32), shows="real part")
    assert (half.maps.reshape(-1).tolist(), half.dtype) == ([3, 0, -1, 0], "complex32")


def test_phase_says_its_unit() -> None:
    assert channel_maps(COMPLEX, shows="phase").note == "phase in radians from −π to π, where both ends mean the same"


def test_quantized_values_and_stored_integers() -> None:
    """C30: (integer − zero point) × scale, both shown, with scale and zero point."""
    tensor = per_tensor()
    assert channel_maps(tensor).maps.reshape(-1).tolist() == [2.0, 0.0, -1.0, -0.5]
    stored = channel_maps(tensor, shows="stored integer")
    assert stored.maps.reshape(-1).tolist() == [14, 10, 8, 9]
    assert (stored.shows, stored.dtype) == ("stored integer", "quint8")
    assert stored.note == channel_maps(tensor).note == "quantized with scale 0.5 and zero point 10"


def test_each_channel_may_have_its_own_scale() -> None:
    """C30: 1 is stored as 1 / 0.5 + 1 and 1 / 0.25 + 3."""
    stored = channel_maps(per_channel(), shows="stored integer")
    assert stored.maps.reshape(-1).tolist() == [3, 7]
    assert stored.note == "quantized per channel along axis 1: scales 0.25 to 0.5, zero points 1 to 3"


def test_kinds_there_are() -> None:
    assert value_kinds(COMPLEX) == ("magnitude", "phase", "real part", "imaginary part")
    assert value_kinds(per_tensor()) == ("dequantized value", "stored integer")
    assert value_kinds(torch.ones(1)) == value_kinds(torch.ones(1, dtype=torch.bool)) == ("value",)


def test_numbers_that_a_tensor_does_not_have_are_refused() -> None:
    sentence = "A tensor of dtype float32 has no 'phase' to show: choose 'auto' or one of value."
    with pytest.raises(LayoutError, match=sentence):
        channel_maps(torch.ones(1, 2), shows="phase")


def test_statistics_are_of_what_is_shown() -> None:
    """C30: of the phase, and of stored integers."""
    phase = summarize_kind(COMPLEX, "phase")
    angles = np.angle(COMPLEX.numpy().astype(complex))
    assert (phase.min, phase.max) == (-math.pi / 2, math.pi)
    assert phase.mean == pytest.approx(angles.mean(), rel=1e-12)
    assert (phase.dtype, phase.shows) == ("complex64", "phase")
    stored = summarize_kind(per_tensor(), "stored integer")
    assert (stored.min, stored.max, stored.mean, stored.shows) == (8, 14, 41 / 4, "stored integer")
    assert summarize_kind(COMPLEX).shows == "magnitude"


def test_whole_numbers_are_known_by_their_dtype() -> None:
    """C31: of a quantized tensor it is the stored ones."""
    assert is_whole("int64", "value")
    assert is_whole("quint8", "stored integer")
    assert not any((is_whole("bool", "value"), is_whole("float32", "value"), is_whole("quint8", "dequantized value")))


@pytest.mark.parametrize(
    ("layout", "shape"), [("NCDHW", (2, 4, 3, 5, 6)), ("NDHWC", (2, 3, 5, 6, 4)), ("auto", (2, 4, 3, 5, 6))]
)
def test_slice_of_a_volume(layout: str, shape: tuple[int, ...]) -> None:
    """C28: slice d of channel c is out[n, c, d]."""
    tensor = torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape)
    for depth in range(3):
        maps = channel_maps(tensor, layout, item=1, depth=depth)
        for channel in range(4):
            one = tensor[1, depth, :, :, channel] if layout == "NDHWC" else tensor[1, channel, depth]
            np.testing.assert_array_equal(maps.maps[channel], one.numpy())
        assert maps.note == ""


@pytest.mark.parametrize(
    ("shape", "depth", "sentence"),
    [
        ((1, 2, 3, 4, 5), 3, "There is no slice 3 of 3 (1×2×3×4×5): choose from 0 to 2."),
        ((1, 2, 3, 4, 5), -1, "There is no slice -1 of 3"),
        ((1, 2, 3, 4), 0, "This 1×2×3×4 tensor is read as NCHW and has no slices: leave depth out"),
    ],
)
def test_slice_that_is_not_there_is_refused(shape: tuple[int, ...], depth: int, sentence: str) -> None:
    with pytest.raises(LayoutError) as caught:
        channel_maps(torch.ones(shape), depth=depth)
    assert sentence in str(caught.value)


def test_axes_of_one_survive_a_slice() -> None:
    """C28: squeezing would lose the channel, or the depth of 1."""
    assert channel_maps(torch.ones(1, 1, 1, 1, 1), depth=0).maps.shape == (1, 1, 1)
    assert channel_maps(torch.ones(1, 1, 3, 1, 7), depth=2).maps.shape == (1, 1, 7)


def test_axis_lengths_go_by_letter() -> None:
    assert axis_lengths((2, 4, 3, 5, 6)) == {"N": 2, "C": 4, "D": 3, "H": 5, "W": 6}
    assert axis_lengths((7, 2, 5), "LNC") == {"L": 7, "N": 2, "C": 5}
    assert axis_lengths(()) == {}
