from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch import nn

from hookviz.errors import HookvizError, LayoutError
from hookviz.layout import arrange, channel_maps

if TYPE_CHECKING:
    from hookviz.types import ChannelMaps

NAN, INF = float("nan"), float("inf")
FLOAT32_MAX = float(np.finfo(np.float32).max)


def counting(*shape: int) -> torch.Tensor:
    """Every element has its own number, so that no two axes can be mistaken for each other."""
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape)


def assert_maps(maps: ChannelMaps, expected: torch.Tensor, *, layout: str) -> None:
    assert maps.layout == layout
    assert maps.maps.dtype == np.float32
    assert maps.maps.flags.c_contiguous
    np.testing.assert_array_equal(maps.maps, expected.numpy())


@pytest.mark.parametrize(
    ("shape", "layout", "expected"),
    [
        ((2, 3, 4, 5), "NCHW", lambda x: x[1]),
        ((2, 7), "NC", lambda x: x[1].reshape(7, 1, 1)),
        ((2, 4, 6), "NLC", lambda x: x[1].reshape(1, 4, 6)),
        ((2, 4, 3, 5, 6), "NCDHW", lambda x: x[1].reshape(4, 15, 6)),
        ((2, 12, 8, 3), "NHWC", lambda x: torch.stack([x[1, :, :, channel] for channel in range(3)])),
        ((2, 4, 8), "NCL", lambda x: x[1].reshape(4, 1, 8)),
        ((4, 2, 6), "LNC", lambda x: torch.stack([x[position, 1] for position in range(4)])[None]),
        ((2, 4, 6), "NHW", lambda x: x[1].reshape(1, 4, 6)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_batched_layouts(shape: tuple[int, ...], layout: str, expected: object) -> None:
    """C12, C28: the second item of a batch, by name and, where the shape says so, by itself."""
    assert callable(expected)
    tensor = counting(*shape)
    assert_maps(channel_maps(tensor, layout=layout, item=1), expected(tensor), layout=layout)
    if layout not in {"NHWC", "NCL", "LNC", "NHW"}:
        assert_maps(channel_maps(tensor, item=1), expected(tensor), layout=layout)


@pytest.mark.parametrize(
    ("shape", "layout", "expected"),
    [
        ((3, 4, 5), "CHW", lambda x: x),
        ((4, 5, 3), "HWC", lambda x: torch.stack([x[:, :, channel] for channel in range(3)])),
        ((4, 5), "HW", lambda x: x.reshape(1, 4, 5)),
        ((7,), "C", lambda x: x.reshape(7, 1, 1)),
        ((), "scalar", lambda x: x.reshape(1, 1, 1)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_layouts_without_a_batch(shape: tuple[int, ...], layout: str, expected: object) -> None:
    """C28: unbatched maps, vectors, scalars."""
    assert callable(expected)
    tensor = counting(*shape)
    assert_maps(channel_maps(tensor, layout=layout), expected(tensor), layout=layout)
    if len(shape) < 2:
        assert_maps(channel_maps(tensor), expected(tensor), layout=layout)


def test_volume_slices_stand_below_each_other() -> None:
    """C28: slice d of channel c is out[0, c, d]; the batch axis of 1 and no other goes."""
    out = nn.Conv3d(3, 4, 3)(torch.randn(1, 3, 5, 6, 7)).detach()
    maps = channel_maps(out)
    assert maps.maps.shape == (4, 12, 5)
    for channel in range(4):
        for depth in range(3):
            slice_ = maps.maps[channel, depth * 4 : (depth + 1) * 4]
            np.testing.assert_array_equal(slice_, out[0, channel, depth].numpy())
    assert maps.note == "volume: 3 slices of 4 rows, from top to bottom"


@pytest.mark.parametrize("shape", [(1, 1, 4, 5), (1, 1, 1, 1), (1, 5, 1, 1), (1, 1, 4, 1)])
def test_axes_of_one_are_kept(shape: tuple[int, ...]) -> None:
    """C28: squeezing would lose the channel."""
    assert channel_maps(counting(*shape)).maps.shape == shape[1:]


def test_three_axes_are_called_what_they_are() -> None:
    maps = channel_maps(counting(1, 3, 10))
    assert maps.note == "tokens × features: not known to be an image, shown as one table"
    assert maps.maps.shape == (1, 3, 10)


@pytest.mark.parametrize("layout", ["auto", "NLC"])
@pytest.mark.parametrize(("tokens", "note"), [(6, ""), (8, "2 of 8 tokens stand before the grid and are left out")])
def test_tokens_on_their_grid(layout: str, tokens: int, note: str) -> None:
    tensor = counting(2, tokens, 5)
    maps = channel_maps(tensor, layout=layout, grid=(2, 3), item=1)
    assert maps.maps.shape == (5, 2, 3)
    for row in range(2):
        for column in range(3):
            token = tensor[1, tokens - 6 + row * 3 + column]
            np.testing.assert_array_equal(maps.maps[:, row, column], token.numpy())
    assert (maps.layout, maps.note) == ("NLC", note)


def test_tokens_with_the_batch_second_lie_on_their_grid_too() -> None:
    """C28: (L, N, C), as torch's sequence layers have it unless told otherwise."""
    tensor = counting(7, 2, 5)
    maps = channel_maps(tensor, layout="LNC", grid=(2, 3), item=1)
    expected = torch.stack([torch.stack([tensor[1 + row * 3 + column, 1] for column in range(3)]) for row in range(2)])
    assert_maps(maps, expected.permute(2, 0, 1), layout="LNC")
    assert maps.note == "1 of 7 tokens stand before the grid and are left out"


def test_memory_format_changes_no_value() -> None:
    """C12: channels_last is about strides."""
    tensor = counting(2, 3, 4, 5)
    last = tensor.to(memory_format=torch.channels_last)
    assert_maps(channel_maps(last, item=1), tensor[1], layout="NCHW")


@pytest.mark.parametrize(
    ("shape", "arguments", "sentence"),
    [
        ((2, 3, 4), {"layout": "NCHW"}, "Layout NCHW needs 4 axes, but the tensor has 3: 2×3×4"),
        ((2, 3), {"layout": "scalar"}, "Layout scalar needs 0 axes, but the tensor has 2: 2×3"),
        ((2, 3), {"layout": "NWHC"}, "Unknown layout 'NWHC': choose 'auto' or one of NCHW, NHWC"),
        ((1,) * 6, {}, "tensors with 6 axes 1×1×1×1×1×1"),
        ((2, 3, 4, 5), {"item": 2}, "no item 2 in a batch of 2 2×3×4×5: choose from 0 to 1"),
        ((2, 3, 4, 5), {"item": -1}, "no item -1"),
        ((9, 3, 4), {"layout": "LNC", "item": 3}, "no item 3 in a batch of 3 9×3×4"),
        ((3, 4, 5), {"layout": "CHW", "item": 1}, "Layout CHW has no batch"),
        ((1, 7, 4), {"grid": (2, 4)}, "A grid of 2×4 needs 8 tokens and at most 16 before them, but there are 7"),
        ((1, 99, 4), {"grid": (2, 4)}, "but there are 99"),
        ((1, 7, 4), {"grid": (0, 7)}, "both at least 1"),
        ((1, 3, 4, 4), {"grid": (2, 2)}, "is read as NCHW"),
    ],
)
def test_what_does_not_fit_is_refused_with_both_sizes(
    shape: tuple[int, ...], arguments: dict[str, object], sentence: str
) -> None:
    with pytest.raises(LayoutError) as caught:
        channel_maps(counting(*shape), **arguments)  # type: ignore[arg-type]  # mistakes under test
    assert sentence in str(caught.value)
    assert str(caught.value).endswith(".")


def test_what_is_no_tensor_or_holds_no_numbers_is_refused() -> None:
    for wrong in (None, (torch.ones(1),), np.ones((1, 2, 3, 4))):
        with pytest.raises(LayoutError, match=r"Expected a torch\.Tensor"):
            channel_maps(wrong)  # type: ignore[arg-type]  # the mistake under test
    with pytest.raises(HookvizError, match="meta device"):
        channel_maps(torch.ones(1, 2, 3, 4, device="meta"))


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((1, 0, 4, 5), (0, 4, 5)),
        ((1, 3, 0, 5), (3, 0, 5)),
        ((0, 4), (0, 0, 0)),
        ((0, 3, 4, 5), (0, 0, 0)),
        ((0,), (0, 1, 1)),
    ],
)
def test_empty_tensors_say_so(shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """C34: no channels, no rows, no boxes, an empty batch."""
    maps = channel_maps(torch.ones(shape))
    assert maps.maps.shape == maps.nan.shape == expected
    assert maps.shape == shape
    assert maps.note == f"empty (0 elements, shape {shape})"


def test_an_empty_batch_that_stands_second_says_so() -> None:
    """C34."""
    maps = channel_maps(torch.ones(4, 0, 6), layout="LNC")
    assert (maps.maps.shape, maps.note) == ((0, 0, 0), "empty (0 elements, shape (4, 0, 6))")


@pytest.mark.parametrize(
    "dtype",
    [torch.float16, torch.bfloat16, torch.float8_e5m2, torch.float32, torch.int64, torch.uint8, torch.bool],
    ids=str,
)
def test_values_are_those_of_float(dtype: torch.dtype) -> None:
    """C29, C31: the real dtype is named, the values are out.float()."""
    tensor = (torch.randn(1, 3, 4, 5, generator=torch.Generator().manual_seed(0)) * 9).relu().to(dtype)
    maps = channel_maps(tensor)
    np.testing.assert_array_equal(maps.maps, tensor.float()[0].numpy())
    assert maps.dtype == str(dtype).removeprefix("torch.")
    assert (maps.shows, maps.note) == ("value", "")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_masks_tell_the_non_finite_values_apart(dtype: torch.dtype) -> None:
    """C13: NaN, +Inf and -Inf each in their own mask."""
    maps = channel_maps(torch.tensor([[[[1.0, NAN], [INF, -INF]]]], dtype=dtype))
    assert maps.nan.tolist() == [[[False, True], [False, False]]]
    assert maps.posinf.tolist() == [[[False, False], [True, False]]]
    assert maps.neginf.tolist() == [[[False, False], [False, True]]]
    assert maps.note == ""


def test_masks_of_finite_maps_take_no_memory() -> None:
    maps = channel_maps(torch.ones(1, 64, 56, 56))
    assert maps.nan.strides == maps.posinf.strides == maps.neginf.strides == (0, 0, 0)
    assert not maps.nan.any()


def test_float64_beyond_float32_is_finite_and_noted() -> None:
    """C33: the flag is about the data: 1e200 is not infinite."""
    values = [1e200, -1e200, FLOAT32_MAX, 1.5, INF, NAN]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        maps = channel_maps(torch.tensor([[values]], dtype=torch.float64), layout="NCL")
    assert maps.maps[0, 0, :4].tolist() == [FLOAT32_MAX, -FLOAT32_MAX, FLOAT32_MAX, 1.5]
    assert maps.posinf.sum() == maps.nan.sum() == 1
    assert maps.note == "2 values beyond float32 are drawn at its end"


@pytest.mark.parametrize(
    ("tensor", "expected", "shows", "note"),
    [
        (torch.tensor([[3 + 4j, -1j]]), [5.0, 1.0], "magnitude", ""),
        (torch.tensor([[3 + 4j, -1j]]).conj(), [5.0, 1.0], "magnitude", ""),
        (torch.tensor([[3 + 4j, -1j]]).conj().imag, [-4.0, 1.0], "value", ""),
        (
            torch.quantize_per_channel(
                torch.tensor([[1.0, 2.0]]), torch.tensor([0.5, 1.0]), torch.tensor([0, 0]), 1, torch.quint8
            ),
            [1.0, 2.0],
            "dequantized value",
            "quantized per channel along axis 1: scales 0.5 to 1, zero point 0",
        ),
        (
            torch.tensor([[0.0, 7.0]]).to_sparse(),
            [0.0, 7.0],
            "value",
            "sparse: 1 of 2 elements stored (50.0%), the others are zero",
        ),
    ],
    ids=["complex", "conj", "neg", "quantized", "sparse"],
)
def test_other_tensors_are_shown_by_their_real_numbers(
    tensor: torch.Tensor, expected: list[float], shows: str, note: str
) -> None:
    """C30: labelled magnitudes, dequantized values, dense copies."""
    maps = channel_maps(tensor)
    assert maps.maps.reshape(-1).tolist() == expected
    assert (maps.shows, maps.note) == (shows, note)


def test_maps_stay_as_they_were_when_the_tensor_is_written_to() -> None:
    tensor = torch.ones(1, 2, 3, 3)
    maps = channel_maps(tensor)
    tensor.zero_()
    assert (maps.maps == 1).all()


def test_float32_values_are_equal_bit_for_bit() -> None:
    bits = torch.randint(-(2**31), 2**31, (1, 4, 8, 8), dtype=torch.int64, generator=torch.Generator().manual_seed(1))
    tensor = bits.to(torch.int32).view(torch.float32)
    np.testing.assert_array_equal(channel_maps(tensor).maps.view(np.int32), bits[0].to(torch.int32).numpy())


def test_graphs_are_left_alone() -> None:
    tensor = torch.ones(1, 2, 3, 3, requires_grad=True) * 2
    assert (channel_maps(tensor).maps == 2).all()
    assert not arrange(tensor).values.requires_grad
    assert tensor.requires_grad


def test_arranged_values_keep_their_dtype() -> None:
    tensor = torch.tensor([[1 / 3, 1e300]], dtype=torch.float64)
    values, layout, note = arrange(tensor)
    assert (values.dtype, values.shape, layout, note) == (torch.float64, (2, 1, 1), "NC", "")
    assert values.reshape(-1).tolist() == [1 / 3, 1e300]
