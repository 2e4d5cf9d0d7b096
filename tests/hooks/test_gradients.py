"""Gradients of layers, compared with autograd alone (oracle O2)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torchvision import models

from hookviz.errors import GradientError, HookvizError
from hookviz.hooks import record
from tests.nets import (
    AliasNet,
    CheckpointNet,
    ConcatNet,
    DictOutputNet,
    InplaceReLUNet,
    KeywordNet,
    ResidualInplaceNet,
    Returning,
    fingerprint,
    hook_count,
    same,
)


def picture(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(7), dtype=torch.float64)


def test_gradient_before_an_inplace_relu() -> None:
    """C07: register_full_backward_hook raises here; the gradient at the pre-activation is the mask."""
    net, x = InplaceReLUNet().double(), picture(1, 3, 8, 8)
    before = fingerprint(net)["attributes"]
    with record(net, gradients=True) as rec:
        net(x).sum().backward()
    conv = net[0]
    assert isinstance(conv, nn.Conv2d)
    assert torch.equal(rec["0"].grad_output, (conv(x) > 0).double())
    assert fingerprint(net)["attributes"] == before
    assert isinstance(net[1], nn.ReLU)
    assert net[1].inplace


def test_gradient_before_an_inplace_residual_sum() -> None:
    """C07: ``out += identity`` makes full hooks raise too."""
    net, x = ResidualInplaceNet().double(), picture(1, 3, 6, 6)
    with record(net, gradients=True) as rec:
        net(x).pow(2).sum().backward()
    z = net.conv(x).detach().requires_grad_()
    (expected,) = torch.autograd.grad(F.relu(z + x).pow(2).sum(), z)
    assert torch.equal(rec["conv"].grad_output, expected)


def test_grad_input_is_only_the_share_through_the_call() -> None:
    """C40: for y = conv(x) + x, the tensor's total gradient is more than what flows back through conv."""
    net, x = ResidualInplaceNet().double(), picture(1, 3, 6, 6).requires_grad_()
    with record(net, gradients=True) as rec:
        net(x).pow(2).sum().backward()
    z = x.detach().clone().requires_grad_()
    (through_conv,) = torch.autograd.grad(net.conv(z), z, rec["conv"].grad_output)
    torch.testing.assert_close(rec["conv"].grad_input[0], through_conv, rtol=0, atol=0)
    assert x.grad is not None
    torch.testing.assert_close(rec[""].grad_input[0], x.grad)
    assert not torch.allclose(rec["conv"].grad_input[0], x.grad)


@pytest.mark.parametrize(
    "layer", ["features.denseblock1.denselayer2.norm1", "features.norm5", "features.transition1", "features.conv0"]
)
def test_densenet_layers_before_concatenation(layer: str) -> None:
    """C07: densenet's features are concatenated and rectified in place."""
    net = models.densenet121().eval().double()
    x = picture(1, 3, 32, 32).requires_grad_()
    with record(net, layer, gradients=True, inputs=True) as rec:
        net(x)[0, 5].backward()
    call = rec[layer]
    if isinstance(call.input[0], list):
        return
    z = call.input[0].clone().requires_grad_()
    (expected,) = torch.autograd.grad(net.get_submodule(layer)(z), z, call.grad_output)
    torch.testing.assert_close(call.grad_input[0], expected)
    assert expected.abs().max() > 0


def test_concatenation_and_lists_of_inputs() -> None:
    net, x = ConcatNet().double(), picture(1, 2, 4, 4).requires_grad_()
    with record(net, gradients=True, inputs=True) as rec:
        net(x).pow(2).sum().backward()
    for name in ("a", "b", "relu"):
        call = rec[name]
        z = call.input[0].clone().requires_grad_()
        (expected,) = torch.autograd.grad(net.get_submodule(name)(z.clone()), z, call.grad_output)
        torch.testing.assert_close(call.grad_input[0], expected)


@pytest.mark.parametrize(
    "name",
    [
        "resnet18",
        "mobilenet_v3_small",
        "shufflenet_v2_x0_5",
        "swin_t",
        pytest.param("vit_b_16", marks=pytest.mark.slow),
    ],
)
def test_grad_input_follows_its_definition_on_every_layer(name: str) -> None:
    """For each call: autograd.grad(module(z), z, grad_output), over whole networks."""
    torch.manual_seed(0)
    net = models.get_model(name, weights=None).eval().double()
    size = 224 if name == "vit_b_16" else 64
    x = picture(1, 3, size, size).requires_grad_()
    with record(net, gradients=True, inputs=True) as rec:
        net(x)[0, 5].backward()
    checked = 0
    for layer, calls in rec.items():
        for call in calls:
            if not isinstance(call.output, Tensor) or call.grad_output is None or call.kwargs:
                continue
            arguments = [one.clone().requires_grad_() if isinstance(one, Tensor) else one for one in call.input]
            if len(arguments) != 1:
                continue
            # An in-place layer may not write into a leaf that requires grad.
            out = net.get_submodule(layer)(arguments[0].clone())
            (expected,) = torch.autograd.grad(out, arguments[0], call.grad_output, allow_unused=True)
            torch.testing.assert_close(call.grad_input[0], expected, msg=lambda text: f"{layer}: {text}")  # noqa: B023
            checked += 1
    assert checked > 25


def test_dict_and_list_outputs_have_a_gradient_per_leaf() -> None:
    """C08: torch's full hook never fires for them."""
    net, x = DictOutputNet().double(), picture(2, 3).requires_grad_()
    with record(net, "heads", gradients=True) as rec:
        net(x).backward()
    gradient = rec["heads"].grad_output
    assert list(gradient) == ["a", "b", "c", "d"]
    assert torch.equal(gradient["a"], torch.ones(2, 2, dtype=torch.float64))
    assert torch.equal(gradient["b"][0], 2 * (x * 2).detach())
    assert gradient["c"] is None
    assert gradient["d"] == "words"


def test_three_inputs_give_three_gradients_of_their_shapes() -> None:
    """C40: a block computing x + y + z, one of them broadcast."""

    class Sum(nn.Module):
        def forward(self, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
            return x + y + 3 * z

    net = Sum()
    x, y, z = picture(2, 3).requires_grad_(), picture(2, 3).requires_grad_(), picture(1, 3).requires_grad_()
    with record(net, gradients=True) as rec:
        net(x, y, z).sum().backward()
    shares = rec[""].grad_input
    assert [share.shape for share in shares] == [(2, 3), (2, 3), (1, 3)]
    assert torch.equal(shares[0], torch.ones(2, 3, dtype=torch.float64))
    assert torch.equal(shares[2], torch.full((1, 3), 6.0, dtype=torch.float64))


def test_an_input_used_several_times_inside_a_module_is_summed() -> None:
    net, x = Returning(lambda x: x * x + x.exp()), picture(3).requires_grad_()
    with record(net, gradients=True) as rec:
        net(x).sum().backward()
    torch.testing.assert_close(rec[""].grad_input[0], (2 * x + x.exp()).detach())


def test_a_module_that_returns_its_input() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.Identity(), nn.Linear(3, 1)).double()
    with record(net, "1", gradients=True) as rec:
        net(picture(2, 3)).sum().backward()
    assert torch.equal(rec["1"].grad_input[0], rec["1"].grad_output)
    assert torch.equal(rec["1"].grad_output, net[2].get_parameter("weight").detach().expand(2, 3))


def test_an_input_that_requires_no_gradient_is_told_from_a_vanishing_one() -> None:
    """C41: torch's full hook hands a zero tensor for it."""

    class Times(nn.Module):
        def forward(self, a: Tensor, b: Tensor) -> Tensor:
            return a * b

    net = Times()
    with record(net, gradients=True) as rec:
        net(torch.tensor(3.0), torch.tensor(5.0, requires_grad=True)).backward()
    assert rec[""].grad_input == (None, torch.tensor(3.0))
    assert rec[""].grad_output == 1


def test_gradients_are_listed_in_forward_order_whatever_order_they_arrive_in() -> None:
    """C39: with a plain input torch's full hook on the root fires first and reports None."""
    net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)).double()
    x = picture(1, 4)
    with record(net, gradients=True) as rec:
        net(x).sum().backward()
    assert list(rec) == ["0", "1", "2", ""]
    assert rec["0"].grad_input == (None,)
    assert rec["0"].grad_output.shape == (1, 3)
    with record(net, gradients=True) as rec:
        net(x.requires_grad_()).sum().backward()
    assert rec["0"].grad_input[0].shape == (1, 4)


def test_keyword_inputs_have_gradients_by_name() -> None:
    """C57."""
    net, x = KeywordNet().double(), picture(1, 3).requires_grad_()
    with record(net, "lin", gradients=True) as rec:
        net(x).sum().backward()
    assert rec["lin"].grad_input == ()
    assert torch.equal(rec["lin"].grad_kwargs["input"], net.lin.weight.detach().sum(0, keepdim=True))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_gradients_without_autograd_are_refused_in_a_sentence(mode: Any) -> None:
    """C38: torch's own words would be cryptic."""
    net = InplaceReLUNet()
    with pytest.raises(GradientError, match=r"leave torch\.no_grad"), mode(), record(net, gradients=True):
        net(picture(1, 3, 8, 8).float())
    assert hook_count(net) == 0


def test_gradients_of_a_frozen_network_are_refused_or_taken_from_the_input() -> None:
    """C38: the input gradient of a linear model is its weight row; the parameters are left alone."""
    net = nn.Linear(4, 3).requires_grad_(requires_grad=False)
    x = torch.randn(1, 4)
    with pytest.raises(GradientError, match="requires_grad_\\(\\) on the input"), record(net, gradients=True):
        net(x)
    before = fingerprint(net)
    with record(net, gradients=True) as rec:
        net(x.requires_grad_())[0, 2].backward()
    assert torch.equal(rec[""].grad_input[0], net.weight[2:3])
    assert same(fingerprint(net), before)


def test_a_layer_before_the_first_trainable_one_says_why_it_has_none() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    net[0].requires_grad_(requires_grad=False)
    with record(net, gradients=True) as rec:
        net(torch.randn(1, 3)).sum().backward()
    assert rec["0"].grad_output is None
    assert "requires a gradient" in rec["0"].gradient_note
    assert rec["1"].gradient_note == ""


def test_integer_and_boolean_outputs_are_left_alone() -> None:
    """C31: requires-grad must not be requested on these."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.top = Returning(lambda x: (x.argmax(1), x > 0, x))

        def forward(self, x: Tensor) -> Tensor:
            return self.top(x)[2].sum()  # type: ignore[no-any-return]

    with record(net := Net(), "top", gradients=True) as rec:
        net(picture(2, 3).requires_grad_()).backward()
    first, second, third = rec["top"].grad_output
    assert (first, second) == (None, None)
    assert torch.equal(third, torch.ones(2, 3, dtype=torch.float64))


def test_a_second_backward_pass_replaces_the_first() -> None:
    """C43: with retain_graph the hook fires twice, and p.grad doubles."""
    net, x = nn.Sequential(nn.Linear(3, 2), nn.Tanh()).double(), picture(1, 3).requires_grad_()
    with record(net, gradients=True) as rec:
        loss = net(x).sum()
        loss.backward(retain_graph=True)
        once = (rec["0"].grad_output.clone(), rec["0"].grad_input[0].clone())
        loss.backward()
    assert torch.equal(rec["0"].grad_output, once[0])
    assert torch.equal(rec["0"].grad_input[0], once[1])


def test_backward_after_the_block_records_nothing() -> None:
    """C44: the graph holds hooks that were removed; nothing may grow."""
    net, x = InplaceReLUNet(), torch.randn(1, 3, 8, 8)
    with record(net, gradients=True) as rec:
        out = net(x)
    out.sum().backward()
    assert rec["0"].grad_output is None
    assert "inside the `with` block" in rec["0"].gradient_note


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointed_blocks_are_recorded_once(reentrant: bool) -> None:  # a parameter of the test
    """C45: the recomputation is not a second call; gradients equal the network's without checkpoints."""
    net = CheckpointNet(reentrant=reentrant).double()
    x = picture(2, 3).requires_grad_()
    with record(net, gradients=True, inputs=True) as rec:
        net(x).sum().backward()
    plain = CheckpointNet(reentrant=None).double()
    plain.load_state_dict(net.state_dict())
    with record(plain, gradients=True) as expected:
        plain(picture(2, 3).requires_grad_()).sum().backward()
    assert [len(calls) for calls in rec.values()] == [1] * 5
    assert len(rec.runs) == 1
    torch.testing.assert_close(rec["head"].grad_output, expected["head"].grad_output)
    torch.testing.assert_close(rec["head"].grad_input[0], expected["head"].grad_input[0])
    torch.testing.assert_close(rec[""].grad_input[0], expected[""].grad_input[0])
    if reentrant:
        assert rec["block.0"].grad_output is None
        assert "re-entrant checkpoint" in rec["block.0"].gradient_note
    else:
        torch.testing.assert_close(rec["block.0"].grad_output, expected["block.0"].grad_output)
        torch.testing.assert_close(rec["block"].grad_input[0], expected["block"].grad_input[0])


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_block_checkpointed_from_outside(reentrant: bool) -> None:  # a parameter of the test
    """C45: checkpoint(block, x) with the recording on the block itself."""
    block = nn.Sequential(nn.Linear(3, 4), nn.Tanh()).double()
    x = picture(2, 3).requires_grad_()
    with record(block, gradients=True) as rec:
        checkpoint(block, x, use_reentrant=reentrant).sum().backward()
    assert [len(calls) for calls in rec.values()] == [1, 1, 1]
    if not reentrant:
        assert torch.equal(rec["1"].grad_output, torch.ones(2, 4, dtype=torch.float64))


def test_a_shared_module_has_one_gradient_per_call() -> None:
    net, x = AliasNet().double(), picture(1, 3).requires_grad_()
    with record(net, "tied", gradients=True) as rec:
        net(x).sum().backward()
    ones = torch.ones(1, 3, dtype=torch.float64)
    weight = net.tied.get_parameter("weight").detach()
    torch.testing.assert_close(rec["tied"][1].grad_output, ones)
    torch.testing.assert_close(rec["tied"][0].grad_output, ones @ weight)
    torch.testing.assert_close(rec["tied"][0].grad_input[0], ones @ weight @ weight)


def test_keep_applies_to_gradients_too() -> None:
    net, x = nn.Linear(3, 2), torch.randn(1, 3)
    with record(net, gradients=True, keep=lambda t: t.shape) as rec:
        net(x).sum().backward()
    assert rec[""].grad_output == (1, 2)


def test_other_peoples_full_backward_hooks_fire_as_before() -> None:
    net, x = nn.Sequential(nn.Linear(3, 2), nn.Tanh()).double(), picture(1, 3).requires_grad_()
    seen: list[Any] = []
    net[0].register_full_backward_hook(lambda _, grad_input, grad_output: seen.append((grad_input, grad_output)))
    with record(net, "0", gradients=True) as rec:
        net(x).sum().backward()
    assert len(seen) == 1
    assert torch.equal(rec["0"].grad_output, seen[0][1][0])
    assert torch.equal(rec["0"].grad_input[0], seen[0][0][0])


def test_recording_gradients_changes_none() -> None:
    """C59: parameter gradients are the same to the last bit."""
    net = models.resnet18().eval()
    x = torch.randn(1, 3, 64, 64)
    net(x)[0, 3].backward()
    expected = {
        name: parameter.grad.clone() for name, parameter in net.named_parameters() if parameter.grad is not None
    }
    net.zero_grad()
    with record(net, gradients=True, inputs=True):
        net(x)[0, 3].backward()
    assert len(expected) == 62
    assert all(torch.equal(parameter.grad, expected[name]) for name, parameter in net.named_parameters())


def test_stop_together_with_gradients_is_refused() -> None:
    with pytest.raises(HookvizError, match="choose one"):
        record(nn.Linear(2, 2), stop=True, gradients=True)
