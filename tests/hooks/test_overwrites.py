from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torchvision import models

from hookviz.hooks import record, watch_overwrites
from tests.nets import FunctionalNet, InplaceReLUNet, ResidualInplaceNet, hook_count


def test_the_module_that_writes_is_named_with_what_a_naive_hook_would_show() -> None:
    """C01: the truth beside the usual mistake."""
    net, x = InplaceReLUNet(), torch.randn(1, 3, 8, 8)
    with torch.no_grad(), record(net) as rec, watch_overwrites(net) as overwrites:
        net(x)
    assert [(one.layer, one.call, one.path, one.by) for one in overwrites] == [("0", 0, "", "1")]
    assert torch.equal(overwrites[0].naive, F.relu(rec["0"].output))
    assert hook_count(net) == 0


def test_an_operation_without_a_module_is_put_down_to_the_module_it_runs_in() -> None:
    with torch.no_grad(), watch_overwrites(net := ResidualInplaceNet(), "conv") as overwrites:
        net(torch.randn(1, 3, 6, 6))
    assert [(one.layer, one.by) for one in overwrites] == [("conv", "")]
    with torch.no_grad(), watch_overwrites(net2 := FunctionalNet()) as overwrites:
        net2(torch.randn(1, 3, 6, 6))
    assert [(one.layer, one.by) for one in overwrites] == [("conv", "")]


def test_the_calls_that_a_naive_hook_gets_wrong_are_found_one_and_all() -> None:
    """C01 on resnet18: ``output.detach()`` in torch's own hooks, compared with clones made at the same moment."""
    net = models.resnet18().eval()
    x = torch.randn(1, 3, 64, 64)
    naive: dict[tuple[str, int], Tensor] = {}
    exact: dict[tuple[str, int], Tensor] = {}
    twin = copy.deepcopy(net)
    for name, module in twin.named_modules():

        def store(_: nn.Module, __: object, output: Tensor, name: str = name) -> None:
            call = (name, sum(layer == name for layer, _ in exact))
            naive[call], exact[call] = output.detach(), output.detach().clone()

        module.register_forward_hook(store)
    with torch.no_grad(), watch_overwrites(net) as overwrites:
        twin(x)
        net(x)
    wrong = {call for call in exact if not torch.equal(naive[call], exact[call])}
    assert {(one.layer, one.call) for one in overwrites} == wrong
    leaf = {name for name, module in net.named_modules() if not list(module.children())}
    assert len(leaf) == 52
    assert len({layer for layer, _ in wrong} & leaf) == 17  # every batch norm but the shortcuts' three


def test_a_network_without_inplace_operations_has_none() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))
    with torch.no_grad(), watch_overwrites(net) as overwrites:
        net(torch.randn(1, 3))
    assert overwrites == []


def test_each_call_of_a_reused_layer_is_told_apart() -> None:
    net = models.resnet18().eval()
    with torch.no_grad(), watch_overwrites(net, "layer1.0.*") as overwrites:
        net(torch.randn(1, 3, 64, 64))
    assert [(one.layer, one.call, one.by) for one in overwrites] == [
        ("layer1.0.bn1", 0, "layer1.0.relu"),
        ("layer1.0.bn2", 0, "layer1.0"),
    ]


class CheckpointedNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.relu, self.second = nn.Linear(3, 3), nn.ReLU(inplace=True), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return checkpoint(self.second, self.relu(self.first(x)), use_reentrant=True)  # type: ignore[no-any-return]


def test_a_checkpoint_that_recomputes_in_backward_changes_nothing() -> None:
    """C45: the calls of the forward count, also where the backward pass is run inside the block."""
    net = CheckpointedNet()
    with watch_overwrites(net) as overwrites:
        net(torch.rand(2, 3)).sum().backward()
    assert [(one.layer, one.call, one.by) for one in overwrites] == [("first", 0, "relu")]
