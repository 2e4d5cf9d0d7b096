"""Wrappers, arguments, outputs and tensors of every sort: all are named, kept and passed on as they are."""

from __future__ import annotations

import types
from collections import ChainMap, OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.fx.immutable_collections import immutable_dict, immutable_list
from torch.optim.swa_utils import AveragedModel

from hookviz.errors import HookvizError, UnknownLayerError
from hookviz.hooks import list_layers, private_copy, record
from hookviz.models import load_model
from hookviz.statistics import summarize
from tests.hooks.exactness import identical
from tests.nets import InplaceReLUNet, Pair, Returning


class Wrapper(nn.Module):
    """As people write them around a network: the one inside is called ``module``."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any) -> Any:
        return self.module(*args)


def compiled(net: nn.Module) -> nn.Module:
    found: Any = torch.compile(net, backend="eager")
    return found  # type: ignore[no-any-return]  # torch.compile gives back what it was given


WRAPPERS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "nothing": lambda net: net,
    "compile": compiled,
    "DataParallel": nn.DataParallel,
    "DataParallel of a compiled one": lambda net: nn.DataParallel(compiled(net)),
    "a compiled DataParallel": lambda net: compiled(nn.DataParallel(net)),
    "an average of weights": AveragedModel,
    "one's own": Wrapper,
}


@pytest.mark.parametrize("chosen", ["0", "module.0", "_orig_mod.0"])
@pytest.mark.parametrize("kind", WRAPPERS)
def test_a_layer_goes_by_its_name_inside_and_outside_of_a_wrapper(kind: str, chosen: str) -> None:
    """C53: also one that was written down when the network was in another wrapper."""
    torch._dynamo.reset()
    net, x = InplaceReLUNet().eval(), torch.randn(1, 3, 8, 8)
    wrapped = WRAPPERS[kind](net)
    keys = list(wrapped.state_dict())
    with torch.no_grad(), record(wrapped, chosen) as rec:
        wrapped(x)
    assert len(rec) == 1
    assert torch.equal(rec["0"].output, net[0](x))
    assert list(wrapped.state_dict()) == keys


@pytest.mark.parametrize("kind", ["DataParallel", "an average of weights", "one's own"])
def test_the_names_that_a_wrapper_gives_lead_to_its_layers_afterwards_too(kind: str) -> None:
    """C53: those of ``wrapped.named_modules()``."""
    wrapped, x = WRAPPERS[kind](InplaceReLUNet()), torch.randn(1, 3, 8, 8)
    with torch.no_grad(), record(wrapped, "module.*") as rec:
        out = wrapped(x)
    names = [name for name, _ in wrapped.named_modules()]
    assert names == ["", "module", "module.0", "module.1"]
    assert torch.equal(rec["module.1"].output, out)
    assert rec["module.0"] is rec["0"]


def test_a_network_in_a_sequential_keeps_both_names_apart() -> None:
    """C53: that is no wrapper: ``0`` is the network, ``0.0`` its first layer."""
    net, x = nn.Sequential(InplaceReLUNet()), torch.randn(1, 3, 8, 8)
    with torch.no_grad(), record(net, "0") as rec:
        out = net(x)
    assert torch.equal(rec["0"].output, out)
    with pytest.raises(UnknownLayerError, match=r"no layer 'module\.2' in Sequential"):
        record(net, "module.2")


def test_parallel_copies_are_refused_and_one_device_gives_the_whole_batch_in_order() -> None:
    """C56: on several GPUs each replica would see its part; on one there is no replica."""
    net, batch = InplaceReLUNet().eval(), torch.randn(8, 3, 8, 8)
    parallel = nn.DataParallel(net)
    with torch.no_grad(), record(parallel, "0") as rec:
        parallel(batch)
    assert rec["0"].output.shape[0] == 8
    assert torch.equal(rec["0"].output, net[0](batch))
    parallel.device_ids = [0, 1]
    for look in (record, list_layers):
        with pytest.raises(HookvizError, match=r"several GPUs; pass its `\.module` and run that"):
            look(parallel)


STRUCTURES: dict[str, Callable[[Tensor], Any]] = {
    "a dict in a tuple": lambda x: ({"a": x}, None, "word", 3),
    "a namedtuple": lambda x: Pair(x, None),
    "an ordered dict": lambda x: OrderedDict(low=x, high=[x * 2]),
    "a default dict": lambda x: defaultdict(list, a=[x]),
    "several dicts as one": lambda x: ChainMap({"a": x}),
    "a read-only dict": lambda x: types.MappingProxyType({"a": x}),
    "FX's frozen dict": lambda x: immutable_dict({"a": x, "b": 1}),
    "FX's frozen list": lambda x: immutable_list([x, [x]]),
    "a queue": lambda x: deque([x, x * 2], maxlen=2),
    "a set": lambda x: {x},
    "a frozen set": lambda x: frozenset([x]),
}


@pytest.mark.parametrize("kind", STRUCTURES)
def test_outputs_keep_their_type_and_their_values(kind: str) -> None:
    """C09, C83: nothing raises, what flows on is the very object, and what is kept does not change with it."""
    x = torch.randn(2, 3)
    made = STRUCTURES[kind](x.clone())
    net = Returning(lambda _: made)
    with record(net) as rec:
        out = net(x)
    assert out is made
    kept = rec[""].output
    assert type(kept) is type(out)
    expected = STRUCTURES[kind](x.clone())
    for tensor in tensors_of(out):
        tensor.zero_()
    assert [one.tolist() for one in tensors_of(kept)] == [one.tolist() for one in tensors_of(expected)]
    assert len(rec[""].output_info) == len(tensors_of(expected)) > 0


def tensors_of(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    items = value.values() if hasattr(value, "values") else value if hasattr(value, "__iter__") else ()
    return [] if isinstance(value, str) else [tensor for item in items for tensor in tensors_of(item)]


@dataclass(frozen=True)
class Batch:
    images: Tensor
    boxes: list[Tensor]
    names: tuple[str, ...] = ("cat",)


class TwoInputsNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 2)

    def forward(self, first: Any, second: Any = None, *, scale: float = 1.0) -> Tensor:
        tensor = first.images if isinstance(first, Batch) else first["x"] if isinstance(first, dict) else first
        tensor = tensor[0] if isinstance(tensor, (list, tuple)) else tensor
        return self.lin(tensor) * scale + (0 if second is None else second)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((torch.ones(1, 3), torch.ones(1, 2)), {}),
        (({"x": torch.ones(1, 3), "y": None},), {"scale": 2.0}),
        (([torch.ones(1, 3), torch.zeros(1)],), {}),
        (((torch.ones(1, 3),),), {"second": torch.ones(1, 2)}),
        ((Batch(torch.ones(1, 3), [torch.ones(4)]),), {"second": None}),
        ((), {"first": {"x": torch.ones(1, 3)}, "second": torch.ones(1, 2)}),
    ],
    ids=["two tensors", "a dict", "a list", "a tuple", "a dataclass", "keywords"],
)
def test_whatever_a_network_takes_it_gets_and_is_kept(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """C83: a list stays one argument."""
    net = TwoInputsNet()
    expected = net(*args, **kwargs)
    with record(net, inputs=True) as rec:
        out = net(*args, **kwargs)
    assert torch.equal(out, expected)
    assert identical(rec[""].input, args)
    assert identical(rec[""].kwargs, kwargs)
    given = tensors_of([vars(one) if isinstance(one, Batch) else one for one in (*args, *kwargs.values())])
    assert [info.shape for info in rec[""].input_info] == [tuple(tensor.shape) for tensor in given]
    (root, lin) = list_layers(net, *args, **kwargs)
    assert (root.output_shapes, lin.output_shapes) == (((1, 2),), ((1, 2),))


KINDS: dict[str, Callable[[Tensor], Tensor]] = {
    "complex32": lambda x: torch.complex(x.half(), x.half()),
    "complex128": lambda x: torch.complex(x.double(), x.double()),
    "bool": lambda x: x > 0,
    "int8": lambda x: (x * 10).to(torch.int8),
    "uint16": lambda x: (x.abs() * 10).to(torch.uint16),
    "float8_e4m3fn": lambda x: x.to(torch.float8_e4m3fn),
    "float8_e8m0fnu": lambda x: x.abs().to(torch.float8_e8m0fnu),
    "quantized per channel": lambda x: torch.quantize_per_channel(
        x, torch.tensor([0.1, 0.2]), torch.tensor([0, 1]), 0, torch.qint8
    ),
    "quint4x2": lambda x: torch.quantize_per_tensor(x, 0.1, 3, torch.quint4x2),
    "sparse_coo": lambda x: x.relu().to_sparse(),
    "sparse_csr": lambda x: x.relu().to_sparse_csr(),
    "conj": lambda x: torch.complex(x, x).conj(),
    "neg": lambda x: torch.complex(x, x).conj().imag,
    "mkldnn": lambda x: x.to_mkldnn(),
    "nested": lambda x: torch.nested.nested_tensor([x, x[:1]]),
    "jagged": lambda x: torch.nested.nested_tensor([x, x[:1]], layout=torch.jagged),
}


def real_numbers(tensor: Tensor) -> Tensor:
    """What a reader is shown, one after the other: magnitudes, dequantized values, dense copies."""
    if tensor.is_nested:
        return torch.cat([real_numbers(item) for item in tensor.unbind()])
    if tensor.is_quantized:
        return tensor.dequantize().double().flatten()
    dense = tensor if tensor.layout is torch.strided else tensor.to_dense()
    return (dense.to(torch.complex128).abs() if dense.is_complex() else dense.double()).flatten()


@pytest.mark.parametrize("kind", KINDS)
def test_tensors_of_every_kind_are_kept_listed_and_summarized(kind: str) -> None:
    """C30."""
    net, x = Returning(KINDS[kind]), torch.tensor([[1.5, -2.0, 0.0], [0.5, 3.0, -0.5]])
    with torch.no_grad(), record(net) as rec:
        out = net(x)
    kept = rec[""].output
    assert (kept.dtype, kept.layout, kept.is_nested) == (out.dtype, out.layout, out.is_nested)
    numbers = real_numbers(KINDS[kind](x))
    assert torch.equal(real_numbers(kept), numbers)
    shape = (2, -1, 3) if out.is_nested else (2, 3)
    assert list_layers(net, x)[0].output_shapes == (shape,)
    assert rec[""].output_info[0].shape == shape
    summary = summarize(kept)
    assert summary.count == len(numbers)
    assert summary.max == pytest.approx(numbers.max().item())


@pytest.mark.parametrize("engine", torch.backends.quantized.supported_engines)
def test_a_private_copy_of_an_int8_network_computes_the_same(engine: str) -> None:
    """C30: copying packs int8 weights anew, for whatever kernels are chosen then; those of x86 round otherwise."""
    net, x = load_model("quantized_mobilenet_v2", None, "cpu").module, torch.rand(1, 3, 64, 64)
    expected = first_layer_of(net, x)
    before = torch.backends.quantized.engine
    try:
        torch.backends.quantized.engine = engine
        assert torch.equal(first_layer_of(private_copy(net), x), expected)
    finally:
        torch.backends.quantized.engine = before


def first_layer_of(net: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad(), record(net, "features.0.0") as rec:
        net(x)
    output: Tensor = rec["features.0.0"].output.int_repr()
    return output
