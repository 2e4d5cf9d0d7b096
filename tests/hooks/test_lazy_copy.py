"""Copies that wait for a write: exact wherever somebody writes, and made at once wherever anything is unusual."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.utils.dlpack
from torch import Tensor, nn
from torchvision import models

from hookviz.hooks import lazy_copy, record
from hookviz.hooks.lazy_copy import LazyCopies
from tests.nets import clones_at_hook_time, same

is_marked: Callable[[Tensor], bool] = torch._C._is_cow_tensor  # type: ignore[attr-defined]

DTYPES = [
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex32, torch.complex64, torch.complex128),
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64),
    *(torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu, torch.bool),
]


def copies() -> LazyCopies:
    made = LazyCopies([])
    made.begin(())
    return made


def of_bytes(dtype: torch.dtype) -> Tensor:
    """48 bytes, 0 and 1 in turn, as this dtype."""
    return torch.tensor([0, 1] * 24, dtype=torch.uint8).view(dtype)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_waits_and_keeps_its_values(dtype: torch.dtype) -> None:
    tensor = of_bytes(dtype)
    tensor = torch.empty_like(tensor).copy_(tensor)
    kept = copies().copy(tensor)
    assert is_marked(kept)
    tensor.fill_(1)
    assert kept.dtype is dtype
    assert kept.view(torch.uint8).tolist() == [0, 1] * 24


WRITES: dict[str, Callable[[Tensor], object]] = {
    "method": lambda x: x.zero_(),
    "item": lambda x: x.__setitem__((0, 1), 9.0),
    "view": lambda x: x.T[1].fill_(9.0),
    "slice_made_before": lambda x: x[:1].mul_(-3.0),
    "data": lambda x: x.data.fill_(9.0),
    "out": lambda x: torch.add(x, 1, out=x),
    "detached": lambda x: x.detach().sub_(1.0),
    "numpy_made_later": lambda x: x.numpy().fill(9.0),
    "dlpack_made_later": lambda x: torch.utils.dlpack.from_dlpack(x).zero_(),
    "storage_emptied": lambda x: x.untyped_storage().resize_(0),
    "set_to_another": lambda x: x.set_(torch.zeros(2, 3)),  # type: ignore[call-overload]
    "random": lambda x: x.uniform_(),
    "foreach": lambda x: torch._foreach_add_([x], 1.0),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=list(WRITES))
def test_no_way_of_writing_reaches_the_copy(write: Callable[[Tensor], object]) -> None:
    tensor = torch.arange(6.0).view(2, 3).clone()
    kept = copies().copy(tensor)
    write(tensor)
    assert kept.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


@pytest.mark.parametrize("write", [write for name, write in WRITES.items() if "storage" not in name])
def test_writing_into_the_copy_does_not_reach_the_network(write: Callable[[Tensor], object]) -> None:
    tensor = torch.arange(6.0).view(2, 3).clone()
    write(copies().copy(tensor))
    assert tensor.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


UNUSUAL: dict[str, Callable[[], Tensor]] = {
    "sparse": lambda: torch.eye(3).to_sparse(),
    "sparse_rows": lambda: torch.eye(3).to_sparse_csr(),
    "mkldnn": lambda: torch.ones(2, 3).to_mkldnn(),
    "conjugated": lambda: torch.tensor([1 + 2j, 3 - 4j]).conj(),
    "negated": lambda: torch.tensor([1 + 2j, 3 - 4j]).conj().imag,
    "expanded": lambda: torch.ones(3, 1).expand(3, 4),
    "part_of_a_larger": lambda: torch.arange(1000.0)[:3],
    "from_numpy": lambda: torch.from_numpy(np.arange(3.0)),
    "parameter": lambda: nn.Parameter(torch.ones(3)),
    "meta": lambda: torch.ones(3, device="meta"),
}


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("make", UNUSUAL.values(), ids=list(UNUSUAL))
def test_what_is_unusual_is_copied_at_once(make: Callable[[], Tensor]) -> None:
    tensor = make()
    kept = copies().copy(tensor)
    assert kept.layout is tensor.layout
    if tensor.is_meta:
        assert kept.is_meta
        return
    values = [kept.to_dense(), tensor.to_dense()] if tensor.layout is not torch.strided else [kept, tensor]
    assert torch.equal(*(value.resolve_conj().resolve_neg() for value in values))
    if tensor.layout is torch.strided:
        assert not is_marked(kept)
        assert not is_marked(tensor)


@pytest.mark.filterwarnings("ignore:torch.quantize")
def test_quantised_tensors_are_copied_at_once() -> None:
    tensor = torch.quantize_per_tensor(torch.tensor([0.0, 1.0, 2.0]), 0.5, 3, torch.quint8)
    kept = copies().copy(tensor)
    assert kept.int_repr().tolist() == [3, 5, 7]
    assert (kept.q_scale(), kept.q_zero_point()) == (0.5, 3)


def test_a_part_does_not_hold_the_memory_of_the_whole() -> None:
    whole = torch.zeros(1_000_000)
    kept = copies().copy(whole[:2])
    assert kept.untyped_storage().nbytes() == 8


def test_inference_tensors_become_ordinary_ones() -> None:
    with torch.inference_mode():
        tensor = torch.ones(3) * 2
        kept = copies().copy(tensor)
        tensor.zero_()
    assert not kept.is_inference()
    assert kept.tolist() == [2.0, 2.0, 2.0]


class Passing(nn.Module):
    """Gives its input, its parameter and its buffer as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.same = nn.Identity()
        self.weight = nn.Parameter(torch.ones(2))
        self.table = nn.Buffer(torch.ones(2))

    def forward(self, x: Tensor) -> tuple[Any, ...]:
        return self.same(x), self.weight, self.table, self.weight.view(1, 2), self.table[None]


def test_memory_that_was_there_before_the_run_is_left_as_it_is() -> None:
    """The caller may hold numpy's view of it, an optimizer its address."""
    net, array = Passing(), np.ones((1, 2), np.float32).copy()
    x = torch.tensor(array)
    view, address = x.numpy(), net.weight.data_ptr()
    with torch.no_grad(), record(net, inputs=True) as rec:
        net(x)
    for tensor in (x, net.weight, net.table):
        assert isinstance(tensor, Tensor)
        assert not is_marked(tensor)
    view[:] = 7.0
    assert rec["same"].output.tolist() == rec["same"].input[0].tolist() == [[1.0, 1.0]]
    assert [one.tolist() for one in rec[""].output[1:]] == [[1.0, 1.0], [1.0, 1.0], [[1.0, 1.0]], [[1.0, 1.0]]]
    assert net.weight.data_ptr() == address


def test_a_layer_called_by_itself_leaves_the_callers_input_as_it_is() -> None:
    layer, x = nn.Identity(), torch.ones(2)
    with record(nn.Sequential(layer), "0") as rec:
        layer(x)
    assert not is_marked(x)
    assert rec["0"].output.tolist() == [1.0, 1.0]


def test_what_the_network_returns_is_ordinary_memory() -> None:
    """Torch cannot enlarge memory that waits for a write and then write into it."""
    net, x = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 3)), torch.ones(1, 2)
    with torch.no_grad(), record(net) as rec:
        output = net(x)
    expected = output.tolist()
    assert not is_marked(output)
    with pytest.warns(UserWarning, match="resized"):
        torch.cat([torch.ones(4, 3), torch.ones(4, 3)], out=output)
    assert output.shape == (8, 3)
    assert rec["1"].output.tolist() == rec[""].output.tolist() == expected


class Enlarging(nn.Module):
    """Enlarges what an earlier layer returned, and writes into it."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.first(x)
        y.resize_(4, 2)
        y.fill_(1.0)
        return y * 2


def test_a_network_that_enlarges_an_earlier_output_computes_as_ever() -> None:
    net, x = Enlarging(), torch.ones(1, 2)
    with torch.no_grad(), record(net) as rec:
        output = net(x)
        expected = net.first(x)
    assert output.tolist() == [[2.0, 2.0]] * 4
    assert torch.equal(rec.last["first"].output, expected)


class NumpyInside(nn.Module):
    """Keeps numpy's view of what a layer is about to return, and writes through it afterwards."""

    class Layer(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            y = x * 2
            self.view = y.numpy()
            return y

    def __init__(self) -> None:
        super().__init__()
        self.layer = self.Layer()

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(x)
        self.layer.view[:] = 9.0
        return y  # type: ignore[no-any-return]


def test_a_view_of_numpys_made_before_the_layer_returned_does_not_escape() -> None:
    with torch.no_grad(), record(net := NumpyInside()) as rec:
        output = net(torch.ones(2))
    assert output.tolist() == [9.0, 9.0]
    assert rec["layer"].output.tolist() == [2.0, 2.0]
    assert rec[""].output.tolist() == [9.0, 9.0]


class Later(nn.Module):
    """Writes into an earlier layer's output, but not in its first run."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.norm = nn.BatchNorm2d(2)
        self.runs = 0

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.conv(x)
        z: Tensor = self.norm(y)
        self.runs += 1
        if self.runs > 1:
            y.mul_(0.0)
            z.add_(1.0)
        return y + z


def test_a_write_where_none_was_in_the_first_run_is_kept_out_too() -> None:
    """C01, planted: what is known from one run does not hold for the next."""
    net, x = Later().eval(), torch.randn(1, 1, 5, 5)
    with torch.no_grad():
        expected = net.norm(net.conv(x)), net.conv(x)
        for _ in range(3):
            with record(net) as rec:
                net(x)
            assert torch.equal(rec["norm"].output, expected[0])
            assert torch.equal(rec["conv"].output, expected[1])


def test_layers_that_return_the_same_tensor_share_nothing_visible() -> None:
    net = nn.Sequential(nn.Sequential(nn.Linear(2, 2)))
    with torch.no_grad(), record(net) as rec:
        net(torch.ones(1, 2))
    before = rec["0"].output.tolist()
    rec["0.0"].output.zero_()
    assert rec["0"].output.tolist() == before
    assert rec[""].output.tolist() == before


@pytest.mark.parametrize("mode", ["no_grad", "grad", "inference", "autocast"])
@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small", "swin_v2_t"])
def test_every_layer_is_exact_in_every_mode(name: str, mode: str) -> None:
    torch.manual_seed(0)
    net = models.get_model(name, weights=None).eval()
    x = torch.randn(1, 3, 64, 64)
    modes = {"no_grad": torch.no_grad, "grad": torch.enable_grad, "inference": torch.inference_mode}
    with modes.get(mode, lambda: torch.autocast("cpu", dtype=torch.bfloat16))():
        expected_output, expected = clones_at_hook_time(net, x)
        with record(net, inputs=True) as rec:
            output = net(x)
    assert same(output, expected_output)
    assert {layer: [call.output for call in calls] for layer, calls in rec.items()}.keys() == expected.keys()
    for layer, outputs in expected.items():
        assert all(map(same, [call.output for call in rec[layer]], outputs)), layer


def test_gradients_are_those_of_a_plain_run() -> None:
    torch.manual_seed(0)
    net = models.resnet18(weights=None).eval()
    x = torch.randn(1, 3, 64, 64)
    net(x).sum().backward()
    expected = {name: parameter.grad for name, parameter in net.named_parameters()}
    net.zero_grad(set_to_none=True)
    with record(net, gradients=True) as rec:
        net(x).sum().backward()
    assert all(torch.equal(parameter.grad, expected[name]) for name, parameter in net.named_parameters())
    assert rec["fc"].grad_output.shape == (1, 1000)


def test_two_threads_on_one_network_keep_their_own_values() -> None:
    torch.manual_seed(0)
    net = models.resnet18(weights=None).eval()
    pictures = [torch.randn(1, 3, 64, 64) for _ in range(4)]
    with torch.no_grad():
        expected = [clones_at_hook_time(net, x)[1] for x in pictures]
    wrong: list[str] = []

    def look(number: int) -> None:
        for _ in range(5):
            with torch.no_grad(), record(net) as rec:
                net(pictures[number])
            wrong.extend(
                layer
                for layer, outputs in expected[number].items()
                if not all(map(same, [call.output for call in rec[layer]], outputs))
            )

    threads = [threading.Thread(target=look, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_without_torchs_private_function_everything_is_copied_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_copy, "CAN_WAIT", False)
    net, x = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True)), -torch.ones(1, 2)
    with torch.no_grad(), record(net) as rec:
        net(x)
        expected = net[0](x)
    assert not is_marked(rec["0"].output)
    assert torch.equal(rec["0"].output, expected)
