from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torchvision import models

from hookviz.errors import HookvizError, UnknownLayerError
from hookviz.hooks import channel_ranking
from hookviz.hooks.channel_ranking import ChannelRanking, rank_channels
from hookviz.models import load_model
from hookviz.samples import load_sample
from tests.hooks.networks import network
from tests.nets import CheckpointNet, Returning, ReusedReLUNet, fingerprint, same


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def zeroed(channel: int, axis: int = 1) -> Callable[..., Tensor]:
    def hook(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        new = output.clone()
        new.select(axis, channel).zero_()
        return new

    return hook


def logits_by_hand(net: nn.Module, layer: str, x: Tensor, channel: int | None, axis: int = 1) -> Tensor:
    """Torch alone: a forward hook on a copy that fills one channel with 0; float64 of the logits of the one item."""
    twin = copy.deepcopy(net).eval()
    if channel is not None:
        twin.get_submodule(layer).register_forward_hook(zeroed(channel, axis))
    with torch.no_grad():
        logits: Tensor = twin(x)[0].double()
    return logits


def drops_by_hand(
    net: nn.Module, layer: str, x: Tensor, target: int, channels: list[int], *, axis: int = 1
) -> tuple[list[float], list[float]]:
    plain = logits_by_hand(net, layer, x, None)
    each = [logits_by_hand(net, layer, x, channel, axis) for channel in channels]
    logits = [float(plain[target] - one[target]) for one in each]
    return logits, [float(plain.softmax(0)[target] - one.softmax(0)[target]) for one in each]


def gradient_times_activation_by_hand(net: nn.Module, layer: str, x: Tensor, target: int, axis: int = 1) -> Tensor:
    """A copy of the layer's output, which the rest of the network then starts from, and its gradient."""
    twin, kept = copy.deepcopy(net).eval(), []

    def hook(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        kept.append(output.detach().clone().requires_grad_())
        return kept[0].clone()

    twin.get_submodule(layer).register_forward_hook(hook)
    (gradient,) = torch.autograd.grad(twin(x)[0, target], kept)
    product: Tensor = (gradient * kept[0]).detach().double().movedim(axis, 0).flatten(1).sum(1)
    return product


def token_network() -> nn.Module:
    net: nn.Module = models.vision_transformer.VisionTransformer(32, 8, 3, 2, 24, 48, num_classes=7).eval()
    nn.init.normal_(net.get_parameter("heads.head.weight"))
    return net


class WindowNet(nn.Module):
    """Cuts each picture into four windows that lie one behind the other in the batch, as Swin does."""

    def __init__(self) -> None:
        super().__init__()
        self.mix, self.head = nn.Conv2d(3, 8, 3), nn.Linear(8 * 4 * 196, 5)

    def forward(self, x: Tensor) -> Tensor:
        windows = x.unfold(2, 16, 16).unfold(3, 16, 16).permute(0, 2, 3, 1, 4, 5).flatten(0, 2)
        return self.head(self.mix(windows).unflatten(0, (len(x), 4)).flatten(1))  # type: ignore[no-any-return]


def picture(size: int = 32) -> Tensor:
    return torch.rand(1, 3, size, size, generator=torch.Generator().manual_seed(1))


CASES: list[tuple[str, Callable[[], nn.Module], str, int, int]] = [
    ("simple_cnn", lambda: network("simple_cnn"), "conv2", 1, 32),
    ("resnet18 before an addition in place", lambda: network("resnet18"), "layer1.0.bn2", 1, 64),
    ("resnet18 block", lambda: network("resnet18"), "layer2.0", 1, 128),
    ("tokens", token_network, "encoder.layers.encoder_layer_0.ln_2", -1, 24),
    ("heads of the image", token_network, "conv_proj", 1, 24),
    ("windows", WindowNet, "mix", 1, 8),
]


@pytest.mark.parametrize(("name", "make", "layer", "axis", "count"), CASES, ids=[case[0] for case in CASES])
def test_drops_are_those_of_zeroing_one_channel_at_a_time_by_hand(
    name: str, make: Callable[[], nn.Module], layer: str, axis: int, count: int
) -> None:
    """In batches to a few units in the last places of float32; one by one to the last bit."""
    net, image, channels = make(), picture(), list(range(count))
    before, state = fingerprint(net), torch.get_rng_state()
    ranking = rank_channels(net, (image,), layer, axis=axis, target=3)
    logits, probabilities = drops_by_hand(net, layer, image, 3, channels, axis=axis)
    scale = float(logits_by_hand(net, layer, image, None).abs().max())
    assert ranking.batched
    assert 0 <= ranking.rounding <= 1e-5 * scale
    np.testing.assert_allclose(ranking.logit_drop, logits, rtol=0, atol=1e-5 * scale)
    np.testing.assert_allclose(ranking.probability_drop, probabilities, rtol=0, atol=1e-5)
    assert max(map(abs, logits)) > 1e-3 * scale  # far above what is allowed
    single = rank_channels(net, (image,), layer, axis=axis, target=3, batch=1)
    assert (single.batched, single.rounding) == (False, 0.0)
    assert single.logit_drop.tolist() == logits
    assert single.probability_drop.tolist() == pytest.approx(probabilities, rel=1e-12, abs=1e-15)
    assert same(fingerprint(net), before)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(("name", "make", "layer", "axis", "count"), CASES, ids=[case[0] for case in CASES])
def test_activations_and_their_gradients_are_torchs(
    name: str, make: Callable[[], nn.Module], layer: str, axis: int, count: int
) -> None:
    """C07: also where the network writes in place into what the layer returned."""
    net, image = make(), picture()
    values: list[Tensor] = []
    twin = copy.deepcopy(net)
    twin.get_submodule(layer).register_forward_hook(lambda _, __, output: values.append(output.detach().clone()))
    with torch.no_grad():
        twin(image)
    ranking = rank_channels(net, (image,), layer, axis=axis, target=2, batch=64)
    np.testing.assert_allclose(
        ranking.mean_activation, values[0].double().movedim(axis, 0).flatten(1).mean(1), rtol=1e-12, atol=1e-15
    )
    expected = gradient_times_activation_by_hand(net, layer, image, 2, axis)
    assert ranking.gradient_times_activation is not None
    np.testing.assert_allclose(
        ranking.gradient_times_activation, expected, rtol=0, atol=1e-5 * float(expected.abs().max())
    )
    assert ranking.order("gradient_times_activation")[0] == int(expected.argmax())


def test_a_trained_network_names_the_channels_its_prediction_rests_on() -> None:
    model = load_model("efficientnet_lite0", device="cpu")
    image, layer = model.prepare(load_sample("grace_hopper"))[:, :, 64:160, 64:160], "blocks.1.0.conv_pwl"
    net = model.module
    count = len(net.get_parameter(f"{layer}.weight"))
    ranking = rank_channels(net, (image,), layer)
    plain = logits_by_hand(net, layer, image, None)
    assert ranking.target == int(plain.argmax())
    assert ranking.logit == float(plain.max())
    assert ranking.probability == float(plain.softmax(0).max())
    logits, _ = drops_by_hand(net, layer, image, ranking.target, list(range(count)))
    np.testing.assert_allclose(ranking.logit_drop, logits, rtol=0, atol=1e-5 * float(plain.abs().max()))
    assert ranking.order()[0] == int(np.argmax(logits))
    assert ranking.order()[-1] == int(np.argmin(logits))


def test_a_linear_head_is_ranked_as_by_arithmetic() -> None:
    """logit = w · x: the drop of a channel is w x, which is its gradient times its value as well."""
    head = nn.Linear(4, 2, bias=False)
    head.weight.data = torch.tensor([[1.0, -2.0, 0.5, 0.0], [0.0, 1.0, 1.0, 1.0]])
    net = nn.Sequential(nn.Identity(), head)
    x = torch.tensor([[3.0, 1.0, 4.0, 9.0]])
    ranking = rank_channels(net, (x,), "0", target=0)
    assert ranking.logit_drop.tolist() == [3.0, -2.0, 2.0, 0.0]
    assert ranking.gradient_times_activation is not None
    assert ranking.gradient_times_activation.tolist() == [3.0, -2.0, 2.0, 0.0]
    assert ranking.mean_activation.tolist() == [3.0, 1.0, 4.0, 9.0]
    assert ranking.order() == [0, 2, 3, 1]
    assert ranking.order("mean_activation") == [3, 2, 0, 1]
    assert (ranking.logit, ranking.target) == (3.0, 0)
    assert rank_channels(net, (x,), "0").target == 1
    assert rank_channels(net, (x,), "0", target=-1).target == 1


def test_a_dead_channel_loses_exactly_nothing_in_a_batch() -> None:
    net, image = network("resnet18"), picture()
    with torch.no_grad():
        net.get_parameter("layer1.0.conv1.weight")[5] = 0
        net.get_parameter("layer1.0.bn1.weight")[5] = 0
        net.get_parameter("layer1.0.bn1.bias")[5] = 0
    ranking = rank_channels(net, (image,), "layer1.0.bn1")
    assert ranking.logit_drop[5] == ranking.probability_drop[5] == ranking.mean_activation[5] == 0.0


class MixingNet(nn.Module):
    """Subtracts the mean of its batch, as a normalisation with the batch's own statistics does."""

    def __init__(self) -> None:
        super().__init__()
        self.features, self.head = nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        return self.head(x - 0.5 * x.mean(0))  # type: ignore[no-any-return]


class OneItemNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features, self.head = nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        if len(x) > 1:
            raise ValueError("one at a time")
        return self.head(self.features(x))  # type: ignore[no-any-return]


class ListNet(OneItemNet):
    """Takes a list of items without a batch axis, as detectors do."""

    def forward(self, x: list[Tensor]) -> Tensor:  # type: ignore[override]
        return super().forward(torch.stack(x))


class ShuffledNet(OneItemNet):
    """Folds positions into the batch with the positions outside, where one would look for the items."""

    def forward(self, x: Tensor) -> Tensor:
        folded = self.features(torch.stack([x, -x, 2 * x]).flatten(0, 1))
        return self.head(folded.unflatten(0, (3, len(x))).mean(0) + folded.unflatten(0, (3, len(x)))[0])  # type: ignore[no-any-return]


class DrawingNet(OneItemNet):
    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.dropout(self.features(x), 0.5, True))  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", [MixingNet, OneItemNet, ListNet, ShuffledNet, DrawingNet])
def test_networks_that_do_not_treat_a_batch_item_by_item_run_one_by_one(kind: type[nn.Module]) -> None:
    net, x = kind().eval(), torch.rand(1, 4)
    given: Any = [x[0]] if kind is ListNet else x
    progress: list[tuple[int, int]] = []
    state = torch.get_rng_state()
    ranking = rank_channels(net, (given,), "features", target=1, on_progress=lambda *counts: progress.append(counts))
    assert not ranking.batched
    assert progress[-6:] == [(number, 6) for number in range(1, 7)]

    def alone(channel: int | None) -> Tensor:
        torch.set_rng_state(state)
        return logits_by_hand(net, "features", given, channel)

    expected = [float(alone(None)[1] - alone(channel)[1]) for channel in range(6)]
    torch.set_rng_state(state)
    assert ranking.logit_drop.tolist() == expected


def test_batch_statistics_are_noticed_though_the_network_is_in_eval_mode() -> None:
    net = nn.Sequential(
        nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6, track_running_stats=False), nn.Flatten(), nn.Linear(216, 3)
    )
    x = torch.rand(1, 3, 8, 8)
    ranking = rank_channels(net.eval(), (x,), "0", target=0)
    assert not ranking.batched
    assert ranking.logit_drop.tolist() == drops_by_hand(net, "0", x, 0, list(range(6)))[0]


def test_each_call_of_a_layer_can_be_meant_and_all_together_where_they_fit() -> None:
    net, x = ReusedReLUNet(), torch.rand(1, 4)
    nn.init.constant_(net.second.bias, 2.0)
    with torch.no_grad():
        hidden, plain = net.relu(net.first(x)), net(x)
        without = [net.relu(net.second(hidden * (torch.arange(6) != channel))) for channel in range(6)]
    first = rank_channels(net, (x,), "relu", call=0, target=0, batch=1)
    assert first.logit_drop.tolist() == [float(plain[0, 0].double() - one[0, 0].double()) for one in without]
    assert max(first.logit_drop) > 0
    second = rank_channels(net, (x,), "relu", call=1, target=0)
    assert second.logit_drop.tolist() == pytest.approx([float(plain[0, 0]), 0.0, 0.0], rel=1e-6)
    with pytest.raises(HookvizError, match=r"calls of layer 'relu' returned \[3, 6\] channels; say which one"):
        rank_channels(net, (x,), "relu", target=0)
    with pytest.raises(HookvizError, match=r"layer 'relu' ran 2 times; choose call= from 0 to 1"):
        rank_channels(net, (x,), "relu", call=2)


def test_all_calls_together_add_their_gradients() -> None:
    """f = 2 (2 m x) m for one layer that doubles, called twice: at m = 1 the derivative in m is 8 x."""
    double = Returning(lambda x: 2 * x)
    net = nn.Sequential(double, double)
    ranking = rank_channels(net, (torch.tensor([[3.0, 5.0]]),), "0", target=1)
    assert ranking.gradient_times_activation is not None
    assert ranking.gradient_times_activation.tolist() == [0.0, 40.0]
    assert ranking.logit_drop.tolist() == [0.0, 20.0]
    assert ranking.mean_activation.tolist() == [9.0, 15.0]  # of 6 and 12, of 10 and 20


def test_a_tensor_inside_a_structure_is_chosen_by_its_path() -> None:
    parts = Returning(lambda x: {"a": x, "b": (x * 2, None)})
    net = nn.Sequential(parts, Returning(lambda parts: parts["a"] + 10 * parts["b"][0]))  # type: ignore[index]  # a dict, here
    x = torch.tensor([[1.0, 3.0]])
    assert rank_channels(net, (x,), "0", path="b.0").logit_drop.tolist() == [0.0, 60.0]
    assert rank_channels(net, (x,), "0", path="a").logit_drop.tolist() == [0.0, 3.0]
    with pytest.raises(HookvizError, match=r"no tensor at path ''; choose path= from 'a', 'b\.0'\."):
        rank_channels(net, (x,), "0")


def test_gradients_need_no_parameter_that_requires_one_and_leave_grad_alone() -> None:
    net, x = network("simple_cnn"), picture()
    expected = gradient_times_activation_by_hand(net, "conv1", x, 4)
    net.requires_grad_(False)
    with torch.inference_mode():
        found = rank_channels(net, (x,), "conv1", target=4).gradient_times_activation
    assert found is not None
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * float(expected.abs().max()))
    assert all(one.grad is None for one in net.parameters())


def test_where_torch_cannot_differentiate_there_are_no_gradients() -> None:
    net = nn.Sequential(nn.Identity(), Returning(lambda x: x.detach() * 2))
    ranking = rank_channels(net, (torch.tensor([[1.0, 3.0]]),), "0")
    assert ranking.gradient_times_activation is None
    assert ranking.logit_drop.tolist() == [0.0, 6.0]
    with pytest.raises(HookvizError, match="no 'gradient_times_activation'; choose from logit_drop, probability_drop"):
        ranking.order("gradient_times_activation")


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_are_ranked_like_what_they_hold(reentrant: bool) -> None:
    net, plain, x = CheckpointNet(reentrant=reentrant), CheckpointNet(reentrant=None), torch.rand(1, 3)
    plain.load_state_dict(net.state_dict())
    expected = rank_channels(plain, (x,), "block.1", target=0)
    ranking = rank_channels(net, (x,), "block.1", target=0)
    assert ranking.logit_drop.tolist() == expected.logit_drop.tolist()


class Cancelled(BaseException):
    """Not an Exception, as streamlit's rerun is not."""


@pytest.mark.parametrize("error", [Cancelled, KeyboardInterrupt, RuntimeError])
def test_progress_is_told_after_each_batch_and_may_cancel(error: type[BaseException]) -> None:
    """C22: nothing stays."""
    net, x = network("simple_cnn"), picture()
    before, progress = fingerprint(net), []
    rank_channels(net, (x,), "conv2", batch=11, on_progress=lambda *counts: progress.append(counts))
    assert progress == [(10, 32), (20, 32), (30, 32), (32, 32)]

    def cancel(done: int, _: int) -> None:
        if done >= 20:
            raise error("enough")

    with pytest.raises(error, match="enough"):
        rank_channels(net, (x,), "conv2", batch=11, on_progress=cancel)
    assert same(fingerprint(net), before)


def test_a_batch_is_made_smaller_where_outputs_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """conv1 of simple_cnn returns 16 x 32 x 32 float32, 65536 bytes; 200000 bytes hold three of them."""
    monkeypatch.setattr(channel_ranking, "LARGEST_OUTPUT", 200_000)
    progress: list[int] = []
    rank_channels(network("simple_cnn"), (picture(),), "conv2", on_progress=lambda done, _: progress.append(done))
    assert progress == list(range(2, 33, 2))


def test_what_cannot_be_ranked_is_said_in_a_sentence() -> None:
    net, x = network("simple_cnn"), picture()
    for change, sentence in [
        ({"layer": "conv9"}, "no layer 'conv9' in SimpleCNN"),
        ({"axis": 4}, r"layer 'conv2' returned \(1, 32, 16, 16\), which has no axis 4; give axis="),
        ({"target": 10}, "there is no class 10 among 10; choose from 0 to 9"),
        ({"path": "0"}, "layer 'conv2' returned no tensor at path '0'; choose path= from ''"),
        ({"args": (torch.cat([x, x]),)}, r"the network was given 2 items; give one, such as image\[:1\]"),
        ({"args": [x]}, r"as a tuple, such as \(image,\), not as list"),
        ({"args": (x * torch.nan,)}, r"scores are not finite; find_nonfinite\(\) says where"),
        ({"module": net.get_submodule("conv1"), "layer": ""}, r"returns no scores of classes, \(1, classes\)"),
    ]:
        given: dict[str, Any] = {"module": net, "args": (x,), "layer": "conv2"} | change  # type: ignore[operator]
        with pytest.raises(HookvizError, match=sentence):
            rank_channels(given.pop("module"), given.pop("args"), given.pop("layer"), **given)
    unused = Returning(lambda x: x)
    unused.add_module("unused", nn.Linear(1, 1))
    with pytest.raises(UnknownLayerError, match="layer 'unused' did not run; choose one that runs"):
        rank_channels(unused, (torch.rand(1, 3),), "unused")
    silent = nn.Sequential(Returning(lambda x: (x, "words")[1]), Returning(lambda _: torch.ones(1, 2)))
    with pytest.raises(HookvizError, match="layer '0' returned no tensor; choose another layer"):
        rank_channels(silent, (torch.rand(1, 3),), "0")


def test_nan_is_sorted_last() -> None:
    values = np.array([1.0, np.nan, 3.0, 3.0])
    ranking = ChannelRanking("x", 0, 0.0, 0.0, values, values, values, None, batched=True, rounding=0.0)
    assert ranking.order() == [2, 3, 0, 1]
    with pytest.raises(HookvizError, match="no 'colour'"):
        ranking.order("colour")  # type: ignore[arg-type]
