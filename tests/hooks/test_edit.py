from __future__ import annotations

import copy
import dataclasses
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchvision import models

from hookviz.errors import HookvizError, UnknownLayerError
from hookviz.hooks import record
from hookviz.hooks.attach import HookHandles
from hookviz.hooks.edit import edit
from hookviz.hooks.edits import AddNoise, Clamp, Edit, KeepOnly, ReplaceByMean, Scale, Zero
from tests.nets import (
    CheckpointNet,
    DictOutputNet,
    FifthFailsNet,
    InplaceReLUNet,
    Pair,
    ResidualInplaceNet,
    Returning,
    ReusedReLUNet,
    fingerprint,
    hook_count,
    same,
)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def by_hand(net: nn.Module, layer: str, change: Callable[[Tensor], Tensor], x: Tensor) -> Any:
    """A forward hook written by hand, on a copy."""
    twin = copy.deepcopy(net)
    with HookHandles() as handles:
        handles.add(twin.get_submodule(layer), lambda _, __, output: change(output), "forward")
        return twin(x)


def assigned(channels: list[int], value: Callable[[Tensor], Any]) -> Callable[[Tensor], Tensor]:
    def change(output: Tensor) -> Tensor:
        new = output.clone()
        new[:, channels] = value(output[:, channels])
        return new

    return change


def seeded(output: Tensor, seed: int) -> Tensor:
    return torch.randn(output.shape, generator=torch.Generator().manual_seed(seed))


CASES: list[tuple[Edit, Callable[[Tensor], Tensor]]] = [
    (Zero([0, 2]), assigned([0, 2], lambda part: 0)),
    (Zero(1), assigned([1], lambda part: 0)),
    (Zero(-1), assigned([3], lambda part: 0)),
    (Zero(), lambda output: output * 0),
    (KeepOnly([1, 3]), assigned([0, 2], lambda part: 0)),
    (KeepOnly([]), lambda output: output * 0),
    (Zero([]), lambda output: output),
    (Scale(-2.5, [1]), assigned([1], lambda part: part * -2.5)),
    (Scale(0.3), lambda output: output * 0.3),
    (Clamp(-0.1, 0.2, [0, 3]), assigned([0, 3], lambda part: part.clamp(-0.1, 0.2))),
    (Clamp(high=0.0), lambda output: output.clamp(max=0.0)),
    (ReplaceByMean([2]), assigned([2], lambda part: part.mean((2, 3), keepdim=True))),
    (ReplaceByMean(), lambda output: output.mean((2, 3), keepdim=True).expand_as(output).clone()),
    (AddNoise(0.5, seed=3), lambda output: output + 0.5 * seeded(output, 3)),
    (
        AddNoise(0.5, [1], seed=4),
        lambda output: assigned([1], lambda part: part + 0.5 * seeded(output, 4)[:, [1]])(output),
    ),
]


@pytest.mark.parametrize(("one", "change"), CASES, ids=[repr(one) for one, _ in CASES])
def test_an_edit_is_the_hook_written_by_hand_to_the_last_bit(one: Edit, change: Callable[[Tensor], Tensor]) -> None:
    """C58, on a network that writes in place right after the edited layer."""
    net, x, state = InplaceReLUNet(), torch.randn(2, 3, 7, 7), torch.get_rng_state()
    before, plain = fingerprint(net), net(x)
    with edit(net, {"0": one}):
        edited = net(x)
    assert torch.equal(edited, by_hand(net, "0", change, x))
    assert torch.equal(net(x), plain)
    assert same(fingerprint(net), before)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("layer", ["layer1.0.bn2", "layer2.0", "relu", "fc"])
def test_logits_of_resnet18_are_those_of_the_hook_by_hand_and_return(layer: str) -> None:
    net, x = models.resnet18(weights=None).eval(), torch.randn(1, 3, 48, 48)
    with torch.no_grad():
        plain = net(x)
        with edit(net, {layer: Zero([5, 9])}):
            edited = net(x)
        expected = by_hand(net, layer, assigned([5, 9], lambda part: 0), x)
        assert torch.equal(edited, expected)
        assert not torch.equal(edited, plain)
        assert torch.equal(net(x), plain)


def test_several_edits_of_a_layer_follow_one_another_and_globs_are_understood() -> None:
    net, x = nn.Sequential(nn.Identity(), nn.Identity()), torch.ones(1, 2)
    with edit(net, {"0": [Scale(3), Clamp(high=2)], "*": [Scale(5.0, 1)]}):
        # "0": 2 x 5 in channel 1; "1" again x 5; the root, which "*" matches too, again
        assert torch.equal(net(x), torch.tensor([[2.0, 250.0]]))


def test_the_original_tensor_is_not_written_into() -> None:
    kept: list[Tensor] = []

    def keep(x: Tensor) -> Tensor:
        kept.append(x + 1)
        return kept[-1]

    net = nn.Sequential(Returning(keep), nn.ReLU(inplace=True))
    with edit(net, {"0": Zero()}):
        assert torch.equal(net(torch.ones(1, 2)), torch.zeros(1, 2))
    assert torch.equal(kept[0], torch.full((1, 2), 2.0))


def test_one_call_of_a_reused_layer_is_edited_in_every_run() -> None:
    net, x = ReusedReLUNet(), torch.randn(5, 4)
    for index in (0, 1):
        with edit(net, {"relu": Zero(call=index)}), record(net) as rec:
            for _ in range(2):
                net(x)
                assert [bool((call.output == 0).all()) for call in rec["relu"]] == [index == 0, index == 1]
    with edit(net, {"relu": Zero(call=0)}):
        for _ in range(2):  # called by itself, a layer's run is that call
            assert torch.equal(net.relu(torch.ones(2)[None]), torch.zeros(1, 2))


@pytest.mark.parametrize(
    ("make", "path", "expected"),
    [
        (lambda x: (x, x + 1), "1", lambda x: (x, (x + 1) * 2)),
        (lambda x: {"a": x, "b": [x, None, "words"]}, "b.0", lambda x: {"a": x, "b": [x * 2, None, "words"]}),
        (lambda x: Pair(x, None), "mean", lambda x: Pair(x * 2, None)),
        (lambda x: x, "", lambda x: x * 2),
    ],
)
def test_a_tensor_inside_a_structure_is_edited_by_its_path(make: Any, path: str, expected: Any) -> None:
    """C08: what is returned keeps its type."""
    net, x = Returning(make), torch.randn(2, 3)
    with edit(net, {"": Scale(2.0, path=path)}):
        assert same(net(x), expected(x))
    assert same(net(x), make(x))


def test_a_path_that_is_not_there_names_those_that_are() -> None:
    net = DictOutputNet()
    message = r"'heads' returned no tensor at path ''; choose path= from 'a', 'b.0'"
    with pytest.raises(HookvizError, match=message), edit(net, {"heads": Zero()}):
        net(torch.randn(1, 3))
    with pytest.raises(HookvizError, match="returned no tensor to edit"), edit(words := Returning(str), {"": Zero()}):
        words(torch.ones(1))
    assert hook_count(net) == 0


@pytest.mark.parametrize(
    ("one", "x", "message"),
    [
        (Zero([4]), torch.ones(1, 4), "layer '': there is no channel 4 among the 4 of axis 1; choose from 0 to 3"),
        (Zero([-5]), torch.ones(1, 4), "there is no channel -5"),
        (Zero(axis=2), torch.ones(1, 4), r"axis 2 is not in a tensor of shape \(1, 4\)"),
        (Scale(0.5), torch.ones(1, 4, dtype=torch.int64), "Scale needs floating-point values, not torch.int64"),
        (ReplaceByMean([0]), torch.ones(1, 4), "no positions to average over"),
    ],
)
def test_an_edit_that_does_not_fit_is_said_in_a_sentence(one: Edit, x: Tensor, message: str) -> None:
    net = nn.Identity()
    with pytest.raises(HookvizError, match=message), edit(net, {"": one}):
        net(x)
    assert hook_count(net) == 0


def test_mistakes_are_found_before_anything_runs() -> None:
    net = InplaceReLUNet()
    with pytest.raises(UnknownLayerError, match="no layer 'convv'"):
        edit(net, {"convv": Zero()}).__enter__()
    with pytest.raises(HookvizError, match="0 is no edit"):
        edit(net, {"0": 0}).__enter__()  # type: ignore[dict-item]  # the mistake
    with pytest.raises(HookvizError, match="Clamp needs a low or a high limit"):
        Clamp()
    with pytest.raises(TypeError):
        Zero("3")  # type: ignore[arg-type]  # the mistake
    with pytest.raises(dataclasses.FrozenInstanceError):
        Zero([1]).channels = (2,)  # type: ignore[misc]  # the mistake
    assert {Zero([1]): 1}[Zero((1,))] == 1
    assert hook_count(net) == 0


def test_channels_last_networks_are_edited_on_their_last_axis() -> None:
    net, x = nn.Linear(3, 4), torch.randn(2, 5, 5, 3)
    with edit(net, {"": Zero([1], axis=-1)}):
        edited = net(x)
    assert torch.equal(edited[..., 1], torch.zeros(2, 5, 5))
    assert torch.equal(edited[..., [0, 2, 3]], net(x)[..., [0, 2, 3]])


def test_values_that_are_not_finite_are_zeroed_too() -> None:
    net, x = nn.Identity(), torch.tensor([[float("nan"), float("inf"), 3.0]])
    with edit(net, {"": Zero([0, 1])}):
        assert torch.equal(net(x), torch.tensor([[0.0, 0.0, 3.0]]))


def test_gradients_flow_through_an_edit() -> None:
    net, x = ResidualInplaceNet(), torch.randn(1, 3, 5, 5)
    with edit(net, {"conv": [Zero([0]), Scale(2.0, [1])]}):
        net(x).sum().backward()
    y = F.conv2d(x, weight := net.conv.weight.detach().requires_grad_(), net.conv.bias.detach(), padding=1)  # type: ignore[union-attr]  # it has one
    y = torch.cat([y[:, :1] * 0, y[:, 1:2] * 2, y[:, 2:]], 1)
    F.relu(y + x).sum().backward()
    assert torch.equal(net.conv.weight.grad, weight.grad)  # type: ignore[arg-type]  # backward has run


def test_other_threads_and_copies_are_not_edited() -> None:
    net, x, results = InplaceReLUNet(), torch.randn(1, 3, 5, 5), []
    plain = net(x)
    with edit(net, {"0": Zero()}):
        thread = threading.Thread(target=lambda: results.append(net(x)))
        thread.start()
        thread.join()
        results.append(copy.deepcopy(net)(x))
        assert not torch.equal(net(x), plain)
    assert all(torch.equal(one, plain) for one in results)
    assert len(results) == 2


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_edits_come_off_whatever_happens(error: type[BaseException]) -> None:
    net = FifthFailsNet()
    before = fingerprint(net)
    with pytest.raises(error), edit(net, {"*": Zero()}):
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            net(torch.ones(1, 4))
        raise error
    assert same(fingerprint(net), before)


def test_an_edit_that_did_nothing_is_warned_of() -> None:
    net = nn.MultiheadAttention(4, 2)
    with pytest.warns(UserWarning, match="layer 'out_proj' never ran"), edit(net, {"out_proj": Zero()}):
        net(*[torch.ones(3, 1, 4)] * 3)
    reused = ReusedReLUNet()
    with (
        pytest.warns(UserWarning, match="ran 2 times, so the edit of call 2 did"),
        edit(reused, {"relu": Zero(call=2)}),
    ):
        reused(torch.ones(1, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with edit(reused, {"relu": Zero(call=2)}):
            pass


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_recomputes_with_the_edit(reentrant: bool) -> None:
    net, plain = CheckpointNet(reentrant=reentrant), CheckpointNet(reentrant=None)
    plain.load_state_dict(net.state_dict())
    x = torch.randn(2, 3, requires_grad=True)
    for one in (net, plain):
        with edit(one, {"block.0": Zero([1])}):
            one(x).sum().backward()
    gradients = [[parameter.grad for parameter in one.parameters()] for one in (net, plain)]
    assert same(*gradients)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_edits_work_without_gradients(mode: Any) -> None:
    net, x = InplaceReLUNet(), torch.randn(1, 3, 5, 5)
    with mode(), edit(net, {"0": KeepOnly([2])}):
        edited = net(x)
    assert torch.equal(edited, by_hand(net, "0", assigned([0, 1, 3], lambda part: 0), x))
