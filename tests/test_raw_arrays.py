from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from torch import Tensor

from hookviz.raw_arrays import raw_arrays
from hookviz.views import npz_bytes


def loaded(tensor: Tensor) -> dict[str, np.ndarray]:
    """What is read from the file that was written, without pickles."""
    with np.load(io.BytesIO(npz_bytes(raw_arrays(tensor))), allow_pickle=False) as arrays:
        return dict(arrays)


@pytest.mark.parametrize(
    "dtype",
    [torch.float64, torch.float32, torch.float16, torch.int8, torch.uint8, torch.int64, torch.bool, torch.complex64],
)
def test_file_holds_the_values_in_their_own_dtype(dtype: torch.dtype) -> None:
    values = torch.tensor([[0.0, 1.0, 3.0], [2.0, 0.0, 1.0]]).to(dtype)
    arrays = loaded(values)
    assert str(arrays["dtype"]) == str(dtype).removeprefix("torch.")
    assert arrays["values"].dtype == values.numpy().dtype
    assert np.array_equal(arrays["values"], values.numpy())


def test_nan_and_infinity_are_kept() -> None:
    values = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0])
    assert loaded(values)["values"].tobytes() == values.numpy().tobytes()


def test_bfloat16_is_kept_as_its_bits() -> None:
    values = torch.tensor([1.0, -2.5, float("nan"), 3.1415926]).bfloat16()
    arrays = loaded(values)
    assert str(arrays["dtype"]) == "bfloat16"
    assert arrays["values"].dtype == np.uint16
    # The upper half of a float32 is a bfloat16.
    back = (arrays["values"].astype(np.uint32) << 16).view(np.float32)
    assert np.array_equal(back, values.float().numpy(), equal_nan=True)


def test_float8_is_kept_as_its_bits() -> None:
    values = torch.tensor([1.0, -2.0, 0.5]).to(torch.float8_e4m3fn)
    arrays = loaded(values)
    assert str(arrays["dtype"]) == "float8_e4m3fn"
    # One sign bit, four of exponent (bias 7), three of mantissa.
    assert arrays["values"].tolist() == [0b0_0111_000, 0b1_1000_000, 0b0_0110_000]


def test_quantized_values_are_kept_as_integers_and_as_numbers() -> None:
    values = torch.quantize_per_tensor(torch.tensor([-1.0, 0.0, 2.5]), 0.5, 10, torch.quint8)
    arrays = loaded(values)
    assert str(arrays["dtype"]) == "quint8"
    assert arrays["values"].tolist() == [8, 10, 15]
    assert arrays["dequantized"].tolist() == [-1.0, 0.0, 2.5]


def test_sparse_values_are_kept_dense() -> None:
    values = torch.sparse_coo_tensor(torch.tensor([[0, 1], [2, 0]]), torch.tensor([3.0, 4.0]), (2, 3))
    assert loaded(values)["values"].tolist() == [[0, 0, 3], [4, 0, 0]]


def test_lazily_conjugated_and_negated_values_are_kept_as_they_read() -> None:
    values = torch.tensor([1 + 2j, 3 - 4j])
    assert loaded(values.conj())["values"].tolist() == [1 - 2j, 3 + 4j]
    assert loaded(values.conj().imag)["values"].tolist() == [-2, 4]


def test_views_with_strides_and_gradients_are_kept_as_they_read() -> None:
    values = torch.arange(6.0, requires_grad=True).reshape(2, 3).t()
    assert loaded(values)["values"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert loaded(torch.ones(1).expand(2, 2))["values"].tolist() == [[1, 1], [1, 1]]
