from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torchvision import models

from hookviz.hooks import record
from hookviz.hooks.stopping import count_calls
from tests.nets import FifthFailsNet, ReusedReLUNet, TwoBranchNet, clones_at_hook_time, fingerprint, hook_count, same


def test_the_forward_ends_after_the_last_chosen_layer_and_the_block_with_it() -> None:
    net, x = models.vgg11().eval(), torch.randn(1, 3, 32, 32)
    ran: list[str] = []
    net.features[3].register_forward_hook(lambda *_: ran.append("features.3"))
    net.features[6].register_forward_hook(lambda *_: ran.append("features.6"))
    with torch.no_grad(), record(net, ["features.0", "features.3"], stop=True) as rec:
        net(x)
        ran.append("after the call")
    assert list(rec) == ["features.0", "features.3"]
    assert ran == ["features.3"]
    assert hook_count(net) == 2


def test_a_layer_that_runs_again_later_is_waited_for() -> None:
    """C02 with stop: both calls of a re-used module."""
    net, x = models.resnet18().eval(), torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        _, expected = clones_at_hook_time(net, x)
        with record(net, "layer1.0.relu", stop=True) as rec:
            net(x)
    assert same([call.output for call in rec["layer1.0.relu"]], expected["layer1.0.relu"])


def test_values_decide_how_often_a_layer_runs() -> None:
    """The meta device refuses such a network, so it is counted in a real run on a private copy."""
    net = TwoBranchNet()
    with torch.no_grad():
        net.stem.weight.zero_()
        net.stem.bias.fill_(1)
        for sign, calls in ((1.0, 2), (-1.0, 1)):
            net.stem.bias.fill_(sign)
            with record(net, "positive", stop=True) as rec:
                net(torch.zeros(1, 3))
            assert len(rec["positive"]) == calls


def test_what_is_never_called_does_not_stop_the_others() -> None:
    net = models.googlenet(weights=None, init_weights=False, aux_logits=True).eval()
    with torch.no_grad(), record(net, ["conv1", "aux1"], stop=True) as rec:
        net(torch.randn(1, 3, 64, 64))
    assert list(rec) == ["conv1"]
    assert rec.not_called == ("aux1",)


def test_counting_touches_nothing() -> None:
    """C84: no user hook fires, no random number is drawn, no buffer moves."""
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(), nn.Conv2d(4, 2, 3)).train()
    fired: list[int] = []
    net[3].register_forward_hook(lambda *_: fired.append(1))
    before, random = fingerprint(net), torch.get_rng_state()
    counts = count_calls(net, ((torch.randn(2, 3, 8, 8, generator=torch.Generator()),), {}))
    assert counts == {"0": 1, "1": 1, "2": 1, "3": 1, "": 1}
    assert fired == []
    assert same(fingerprint(net), before)
    assert torch.equal(torch.get_rng_state(), random)


def test_a_stopped_run_in_train_mode_changes_only_what_ran() -> None:
    net = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 3), nn.BatchNorm1d(3))
    with record(net, "1", stop=True):
        net(torch.randn(4, 3))
    assert net[0].num_batches_tracked == 1
    assert net[2].num_batches_tracked == 0


def test_all_layers_with_stop_is_a_whole_forward() -> None:
    net, after = ReusedReLUNet(), []
    with record(net, stop=True) as rec:
        after.append(net(torch.randn(1, 4)))
    assert torch.equal(rec[""].output, after[0])


def test_a_model_that_catches_every_error_is_stopped_all_the_same() -> None:
    class Stubborn(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x: Tensor) -> Tensor:
            try:
                x = self.first(x)
            except Exception:  # noqa: BLE001  # the trap this net sets
                x = torch.zeros(1, 2)
            return self.second(x)  # type: ignore[no-any-return]

    net, ran = Stubborn(), []
    net.second.register_forward_hook(lambda *_: ran.append(1))
    with record(net, "first", stop=True) as rec:
        net(torch.ones(1, 2))
    assert list(rec) == ["first"]
    assert ran == []


def test_an_error_before_the_last_chosen_layer_is_the_networks_own() -> None:
    net = FifthFailsNet()
    with pytest.raises(RuntimeError, match="mat1 and mat2"), record(net, ["0", "5"], stop=True) as rec:
        net(torch.randn(1, 4))
    assert list(rec) == ["0"]
    assert rec.failed is not None


def test_nested_stops_end_their_own_block() -> None:
    net, order = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)), []
    with record(net, "1", stop=True) as outer:
        with record(net, "0", stop=True) as inner:
            net(torch.ones(1, 2))
        order.append("after inner")
        net(torch.ones(1, 2))
        order.append("after outer's call")
    assert list(inner) == ["0"]
    assert list(outer) == ["1"]
    assert order == ["after inner"]


def test_a_part_called_by_itself_stops_too() -> None:
    net, after = models.vgg11().eval(), []
    with torch.no_grad(), record(net, "features.3", stop=True) as rec:
        net.features(torch.randn(1, 3, 32, 32))
        after.append(1)
    assert list(rec) == ["features.3"]
    assert after == []
