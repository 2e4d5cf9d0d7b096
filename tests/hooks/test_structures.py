"""Wrappers, arguments, outputs and tensors of every sort: all are named, kept and passed on as they are."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from hookviz.hooks import private_copy, record
from hookviz.models import load_model


def first_layer_of(net: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad(), record(net, "features.0.0") as rec:
        net(x)
    output: Tensor = rec["features.0.0"].output.int_repr()
    return output


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
