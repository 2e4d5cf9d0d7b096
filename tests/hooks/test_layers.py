from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, prune
from torchvision import models

from hookviz.errors import HookvizError
from hookviz.hooks import list_layers, private_copy, record
from hookviz.hooks.preserve import preserved
from tests.nets import AliasNet, FifthFailsNet, InplaceReLUNet, ReusedReLUNet, fingerprint, hook_count, same


def test_every_module_is_listed_with_what_it_is() -> None:
    net = ReusedReLUNet()
    rows = [(info.name, info.class_name, info.depth, info.parameters) for info in list_layers(net)]
    assert rows == [
        ("", "ReusedReLUNet", 0, 4 * 6 + 6 + 6 * 3 + 3),
        ("first", "Linear", 1, 30),
        ("second", "Linear", 1, 21),
        ("relu", "ReLU", 1, 0),
    ]
    assert all(info.calls is None for info in list_layers(net))


def test_calls_and_shapes_come_from_one_forward() -> None:
    """C02: the number of calls."""
    infos = {info.name: info for info in list_layers(ReusedReLUNet(), torch.randn(1, 4))}
    assert infos["relu"].calls == 2
    assert infos["relu"].output_shapes == ((1, 6), (1, 3))
    assert infos["first"].output_shapes == ((1, 6),)


def test_a_layer_that_never_runs_has_no_calls() -> None:
    infos = {info.name: info for info in list_layers(nn.MultiheadAttention(4, 2).eval(), *[torch.randn(3, 1, 4)] * 3)}
    assert infos["out_proj"].calls == 0
    assert [leaf.path for leaf in infos[""].outputs[0]] == ["0", "1"]


def test_listing_fires_no_hook_draws_no_number_and_changes_nothing() -> None:
    """C84, C20: also for a network in train mode with dropout, batch norm and an in-place first layer."""
    net = nn.Sequential(nn.ReLU(inplace=True), nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout()).train()
    fired: list[int] = []
    net[1].register_forward_hook(lambda *_: fired.append(1))
    net.register_forward_pre_hook(lambda *_: fired.append(2))
    x = torch.randn(2, 3, 8, 8)
    before, before_x, random = fingerprint(net), x.clone(), torch.get_rng_state()
    infos = list_layers(net, x)
    assert infos[3].output_shapes == ((2, 4, 6, 6),)
    assert fired == []
    assert same(fingerprint(net), before)
    assert torch.equal(x, before_x)
    assert torch.equal(torch.get_rng_state(), random)


def test_listing_inside_an_open_recording_adds_nothing_to_it() -> None:
    net, x = InplaceReLUNet(), torch.randn(1, 3, 8, 8)
    with record(net) as rec:
        list_layers(net, x)
        assert len(rec.runs) == 0


def test_a_failing_forward_names_the_layer_in_a_note() -> None:
    """C65."""
    with pytest.raises(RuntimeError, match="mat1 and mat2") as caught:
        list_layers(FifthFailsNet(), torch.randn(1, 4))
    assert "layer '4' (Linear) failed on an input of shape (1, 6)" in caught.value.__notes__[0]


def test_compiled_and_parallel_networks_are_listed_by_their_own_names() -> None:
    """C53."""
    net = InplaceReLUNet()
    names = [info.name for info in list_layers(net)]
    assert [info.name for info in list_layers(torch.compile(net, backend="eager"))] == names  # type: ignore[arg-type]
    assert [info.name for info in list_layers(nn.DataParallel(net))] == names


def test_a_shared_module_is_listed_once() -> None:
    assert [info.name for info in list_layers(AliasNet())] == ["", "encoder", "encoder.0"]


def test_a_pruned_network_can_be_listed_and_copied_after_a_forward() -> None:
    """C51: deepcopy refuses it, for the masked weight is not a leaf."""
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    prune.l1_unstructured(net[0], "weight", 0.5)
    x = torch.randn(1, 4)
    expected = net(x)
    with pytest.raises(RuntimeError, match="deepcopy"):
        copy.deepcopy(net)
    assert list_layers(net, x)[1].parameters == 20
    assert torch.equal(private_copy(net)(x), expected)
    assert hook_count(private_copy(net)) == 1
    assert int(torch.count_nonzero(net[0].get_parameter("weight_orig") * net[0].get_buffer("weight_mask"))) == 8


@pytest.mark.parametrize("norm", [nn.utils.spectral_norm, parametrizations.weight_norm, parametrizations.spectral_norm])
def test_normalised_weights_come_along(norm: object) -> None:
    net = nn.Sequential(norm(nn.Linear(4, 4))).eval()  # type: ignore[operator]  # each takes a module
    x = torch.randn(1, 4)
    expected = net(x)
    assert torch.equal(private_copy(net)(x), expected)


def test_a_copy_shares_the_weights_and_leaves_foreign_hooks_behind() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    net[0].register_forward_hook(lambda *_: None, with_kwargs=True)
    private = private_copy(net)
    assert all(a is b for a, b in zip(net.parameters(), private.parameters(), strict=True))
    assert not any(a is b for a, b in zip(net.buffers(), private.buffers(), strict=True))
    assert hook_count(private) == 0
    private(torch.randn(3, 4))
    assert net[1].num_batches_tracked == 0


def test_a_hook_that_is_a_method_of_the_network_works_on_the_copys_own_modules() -> None:
    class SelfHooked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(2, 2)
            self.seen = 0
            self.lin.register_forward_hook(self.count)

        def count(self, *_: object) -> None:
            self.seen += 1

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.lin(x)  # type: ignore[no-any-return]

    net = SelfHooked()
    private: Any = private_copy(net)
    private(torch.ones(1, 2))
    assert (net.seen, private.seen) == (0, 1)


def test_a_network_that_cannot_be_copied_says_so() -> None:
    net = nn.Linear(2, 2)
    with Path(__file__).open() as file, pytest.raises(HookvizError, match="cannot be copied"):
        net.__dict__["file"] = file
        private_copy(net)


def test_running_preserved_leaves_everything_as_it_was() -> None:
    """C20, O5: flags per module, buffers, requires_grad, gradients, random state, grad mode."""
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout()).train()
    net[1].eval()
    net[0].get_parameter("weight").requires_grad_(False)
    before, random = fingerprint(net), torch.get_rng_state()
    with preserved(net):
        assert not torch.is_grad_enabled()
        assert not any(one.training for one in net.modules())
        net.train()(torch.randn(2, 3, 8, 8))
        net.requires_grad_(requires_grad=True)
    assert same(fingerprint(net), before)
    assert torch.equal(torch.get_rng_state(), random)
    assert torch.is_grad_enabled()


def test_preserved_puts_things_back_after_an_error() -> None:
    net = nn.BatchNorm1d(2).train()
    before = fingerprint(net)
    with pytest.raises(KeyboardInterrupt), preserved(net):
        net.running_mean.fill_(5)  # type: ignore[union-attr]  # this one tracks statistics
        raise KeyboardInterrupt
    assert same(fingerprint(net), before)


def test_resnet_listing_agrees_with_torch() -> None:
    net = models.resnet18()
    infos = list_layers(net, torch.randn(1, 3, 64, 64))
    assert [info.name for info in infos] == [name for name, _ in net.named_modules()]
    assert infos[0].parameters == 11_689_512
    assert {info.name: info.calls for info in infos}["layer4.1.relu"] == 2


def test_a_lazy_network_stays_lazy() -> None:
    net = nn.Sequential(nn.LazyLinear(3), nn.ReLU())
    infos = list_layers(net, torch.randn(2, 5))
    assert infos[1].output_shapes == ((2, 3),)
    assert net[0].has_uninitialized_params()  # type: ignore[operator]  # a method of lazy modules
    assert infos[0].parameters == 0
