from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from hookviz import numeric
from hookviz.errors import HookvizError
from hookviz.numeric import density_note, dtype_name, float64_chunks, shape_of, shows


def numbers(tensor: torch.Tensor) -> list[float]:
    return [number for chunk in float64_chunks(tensor) for number in chunk.tolist()]


def nested(layout: torch.layout) -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls nested tensors a prototype
        return torch.nested.nested_tensor([torch.tensor([1.0, 2.0]), torch.tensor([3.0])], layout=layout)


PER_TENSOR = torch.quantize_per_tensor(torch.tensor([1.0, 2.0]), 0.5, 0, torch.quint8)
PER_CHANNEL = torch.quantize_per_channel(
    torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([0.5, 1.0]), torch.tensor([0, 0]), 0, torch.qint8
)
MATRIX = torch.tensor([[0.0, 5.0], [0.0, -1.0]])


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (torch.tensor([3 + 4j]), [5.0]),
        (torch.tensor([3 + 4j]).conj(), [5.0]),
        (torch.tensor([3e38 + 3e38j]), [float(np.hypot(np.float64(np.float32(3e38)), np.float64(np.float32(3e38))))]),
        (torch.tensor([3 + 4j]).to(torch.complex32), [5.0]),
        (torch.tensor([1 + 2j]).conj().imag, [-2.0]),
        (PER_TENSOR, [1.0, 2.0]),
        (PER_CHANNEL, [1.0, 2.0, 3.0, 4.0]),
        (MATRIX.to_sparse(), [0.0, 5.0, 0.0, -1.0]),
        (MATRIX.to_sparse_csr(), [0.0, 5.0, 0.0, -1.0]),
        (MATRIX.to_sparse_csc(), [0.0, 5.0, 0.0, -1.0]),
        (MATRIX.to_sparse_bsr((1, 1)), [0.0, 5.0, 0.0, -1.0]),
        (torch.sparse_coo_tensor(torch.tensor([[1, 1]]), torch.tensor([2.0, 3.0]), (2,)), [0.0, 5.0]),
        (MATRIX.to_mkldnn(), [0.0, 5.0, 0.0, -1.0]),
        (torch.tensor([True, False]), [1.0, 0.0]),
        (torch.tensor([-128], dtype=torch.int8), [-128.0]),
        (torch.tensor([2**53 + 1]), [2.0**53]),
        (torch.tensor([2**64 - 1], dtype=torch.uint64), [2.0**64]),
        (torch.tensor([65535], dtype=torch.uint16), [65535.0]),
        (torch.tensor([1.0, -448.0]).to(torch.float8_e4m3fn), [1.0, -448.0]),
        (torch.tensor([57344.0]).to(torch.float8_e5m2), [57344.0]),
        (torch.tensor([65504.0]).half(), [65504.0]),
        (torch.tensor([1.00390625]).bfloat16(), [1.0]),
        (nested(torch.strided), [1.0, 2.0, 3.0]),
        (nested(torch.jagged), [1.0, 2.0, 3.0]),
        (torch.nn.Parameter(torch.tensor([2.0])), [2.0]),
        (torch.tensor(4.0, requires_grad=True) * 2, [8.0]),
        (torch.tensor([[1.0, 2.0], [3.0, 4.0]]).T, [1.0, 3.0, 2.0, 4.0]),
        (torch.tensor(3.0).expand(2, 2), [3.0] * 4),
        (torch.zeros(0, 4), []),
    ],
)
def test_real_numbers_of_every_kind_of_tensor(tensor: torch.Tensor, expected: list[float]) -> None:
    """C30, C31: magnitudes, dequantized values (not the stored integers), implicit zeros, integers as they are."""
    assert numbers(tensor) == expected


def test_inference_tensors_are_read() -> None:
    with torch.inference_mode():
        tensor = torch.ones(2)
    assert numbers(tensor) == [1.0, 1.0]


class Tagged(torch.Tensor):
    """A subclass that survives every operation."""


def test_subclasses_come_as_plain_tensors() -> None:
    assert type(numeric.dense(torch.ones(2).as_subclass(Tagged))) is torch.Tensor


def test_shows_dtype_and_density_are_named() -> None:
    assert [shows(tensor) for tensor in (PER_TENSOR, torch.tensor([1j]), MATRIX)] == [
        "dequantized value",
        "magnitude",
        "value",
    ]
    assert [dtype_name(tensor) for tensor in (PER_TENSOR, MATRIX.bfloat16())] == ["quint8", "bfloat16"]
    for sparse in (MATRIX.to_sparse(), MATRIX.to_sparse_csr()):
        assert density_note(sparse) == "sparse: 2 of 4 elements stored (50.0%), the others are zero"
    assert density_note(MATRIX) == ""


@pytest.mark.parametrize("tensor", [torch.randn(3, 50, 7), torch.randn(7, 50, 3).permute(2, 1, 0), torch.ones(1050)])
def test_chunks_are_small_and_hold_everything_once(tensor: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numeric, "CHUNK", 10)
    chunks = list(float64_chunks(tensor))
    assert max(map(len, chunks)) <= 10
    np.testing.assert_array_equal(np.sort(np.concatenate(chunks)), np.sort(tensor.double().numpy().reshape(-1)))


def test_what_holds_no_numbers_is_refused_in_a_sentence() -> None:
    with pytest.raises(HookvizError, match="meta device"):
        numbers(torch.ones(2, device="meta"))
    with pytest.raises(HookvizError, match="run the module once"):
        numbers(torch.nn.LazyLinear(2).weight)
    with FakeTensorMode():
        fake = torch.ones(2)
    with pytest.raises(HookvizError, match="cannot be read"):
        numbers(fake)
    with pytest.raises(HookvizError, match="cannot be read"):
        numbers(torch.empty(2, dtype=torch.bits8))
    with pytest.raises(HookvizError, match=r"Expected a torch\.Tensor, got ndarray"):
        numbers(np.ones(2))  # type: ignore[arg-type]  # the mistake under test
    with pytest.raises(HookvizError, match="differ in size"):
        shape_of(nested(torch.jagged))
