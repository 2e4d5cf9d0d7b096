"""Every function of the hook library against torch alone, on four networks that set traps for hooks.

``simple_cnn`` is plain, ``resnet18`` adds and rectifies in place, ``densenet121`` concatenates what is then rectified
in place, ``mobilenet_v2`` has shortcuts around in-place activations. The twin is a deepcopy that hookviz never sees.
"""

from __future__ import annotations

import copy
import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_, prune
from torch.utils.flop_counter import FlopCounterMode

import hookviz
from tests.hooks.networks import NETWORKS, example, network
from tests.nets import clones_at_hook_time, hook_count, same

LAYERS = {
    "simple_cnn": "conv2",
    "resnet18": "layer1.0.bn2",
    "densenet121": "features.denseblock1.denselayer2.norm2",
    "mobilenet_v2": "features.3.conv.1.1",
}
"""In the middle, and in all but the first the next operation overwrites what the layer returns."""

Made = tuple[str, Any, Any, Tensor]


@pytest.fixture(params=NETWORKS)
def made(request: pytest.FixtureRequest) -> Iterator[Made]:
    """The layer, the network, its twin, and a batch; afterwards the network has no more hooks than before."""
    torch.set_num_threads(1)
    name = request.param
    net = network(name)
    yield LAYERS[name], net, copy.deepcopy(net), example(name)
    assert hook_count(net) == 0


def loss_of(output: Tensor) -> Tensor:
    return output.square().sum()


def gradients(net: nn.Module) -> dict[str, Tensor | None]:
    return {name: one.grad for name, one in net.named_parameters()}


def replaced_by(twin: nn.Module, layer: str, function: Callable[[Tensor], Tensor]) -> None:
    """Put a hook of torch's on the twin."""
    twin.get_submodule(layer).register_forward_hook(lambda _, __, output: function(output))


def seen_by_torch(twin: nn.Module, layer: str, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A layer's input, output and the gradient of its output, as tensor hooks have them; leaves ``.grad``."""
    seen: dict[str, Tensor] = {}
    module = twin.get_submodule(layer)
    module.register_forward_pre_hook(lambda _, args: seen.update(input=args[0].detach().clone()))

    def forward(_: nn.Module, __: Any, output: Tensor) -> None:
        seen["output"] = output.detach().clone()
        output.register_hook(lambda gradient: seen.update(gradient=gradient.clone()))

    module.register_forward_hook(forward)
    loss_of(twin(images)).backward()
    return seen["input"], seen["output"], seen["gradient"]


def test_record_keeps_what_every_layer_returned(made: Made) -> None:
    """C01, C02: each call of each layer, before anything overwrites it."""
    _, net, twin, images = made
    output, outputs = clones_at_hook_time(twin, images)
    with hookviz.record(net) as rec:
        assert torch.equal(net(images), output)
    assert same({name: [call.output for call in calls] for name, calls in rec.items()}, outputs)


def test_record_keeps_the_gradients_of_a_layers_call(made: Made) -> None:
    """C07: ``grad_output`` as a tensor hook has it, ``grad_input`` as autograd gives it for the layer alone."""
    layer, net, twin, images = made
    given, output, gradient = seen_by_torch(twin, layer, images)
    with hookviz.record(net, layer, inputs=True, gradients=True) as rec:
        loss_of(net(images)).backward()
    alone = given.requires_grad_()
    (expected,) = torch.autograd.grad(twin.get_submodule(layer)(alone), alone, gradient)
    call = rec[layer][0]
    assert torch.equal(call.output, output)
    assert torch.equal(call.grad_output, gradient)
    assert torch.equal(call.grad_input[0], expected)
    assert same(gradients(net), gradients(twin))


def test_attach_replaces_outputs_as_torchs_hook_does(made: Made) -> None:
    layer, net, twin, images = made
    replaced_by(twin, layer, lambda output: output * 2)
    with hookviz.attach(net, {layer: lambda _, __, output: output * 2}):
        assert torch.equal(net(images), twin(images))


def test_attach_replaces_arguments_as_torchs_hook_does(made: Made) -> None:
    layer, net, twin, images = made
    twin.get_submodule(layer).register_forward_pre_hook(lambda _, args: (args[0] + 1,))
    with hookviz.attach(net, {layer: lambda _, args: (args[0] + 1,)}, "forward_pre"):
        assert torch.equal(net(images), twin(images))


def test_attached_backward_hooks_get_what_torchs_would_where_it_does_not_raise(made: Made) -> None:
    """C07, C40: the gradients of the layer's input and of its output."""
    layer, net, twin, images = made
    given, _, gradient = seen_by_torch(twin, layer, images)
    alone = given.requires_grad_()
    (expected,) = torch.autograd.grad(twin.get_submodule(layer)(alone), alone, gradient)
    seen: list[Any] = []
    with hookviz.attach(net, {layer: lambda _, *both: seen.append(both)}, "backward", emulate=True):
        loss_of(net(images)).backward()
    ((grad_input, grad_output),) = seen
    assert same((grad_input, grad_output), ((expected,), (gradient,)))
    assert same(gradients(net), gradients(twin))


def test_attached_tensor_hooks_replace_the_gradient(made: Made) -> None:
    layer, net, twin, images = made
    twin.get_submodule(layer).register_forward_hook(
        lambda _, __, output: output.register_hook(lambda gradient: gradient / 2) and None
    )
    loss_of(twin(images)).backward()
    with hookviz.attach(net, {layer: lambda gradient: gradient / 2}, "tensor"):
        loss_of(net(images)).backward()
    assert same(gradients(net), gradients(twin))


def test_a_global_hook_sees_every_call(made: Made) -> None:
    _, net, twin, images = made
    expected: list[str] = []
    for one in twin.modules():
        one.register_forward_hook(lambda module, _, __: expected.append(type(module).__name__))
    twin(images)
    seen: list[str] = []
    with hookviz.attach_global(lambda module, _, __: seen.append(type(module).__name__)):
        net(images)
    assert seen == expected


def without_channels(output: Tensor) -> Tensor:
    output = output.clone()
    output[:, [0, 2]] = 0
    return output


def test_an_edit_is_the_hook_by_hand(made: Made) -> None:
    layer, net, twin, images = made
    replaced_by(twin, layer, without_channels)
    with hookviz.edit(net, {layer: hookviz.Zero([0, 2])}):
        assert torch.equal(net(images), twin(images))


def shape_of_first(argument: Any) -> tuple[int, ...]:
    """A dense block's layers are given a list."""
    tensor = argument[0] if isinstance(argument, list) else argument
    return tuple(tensor.shape)


def test_the_trace_has_the_forward_in_torchs_order(made: Made) -> None:
    _, net, twin, images = made
    expected: list[tuple[str, str, tuple[int, ...]]] = []
    for name, one in twin.named_modules():
        one.register_forward_pre_hook(
            lambda _, args, name=name: expected.append(("forward_pre", name, shape_of_first(args[0])))
        )
        one.register_forward_hook(
            lambda _, __, output, name=name: expected.append(("forward", name, tuple(output.shape)))
        )
    twin(images)
    assert [(one.kind, one.layer, one.shapes[0]) for one in hookviz.trace(net, images)] == expected


def test_debug_prints_a_line_for_every_firing(made: Made) -> None:
    _, net, twin, images = made
    expected: list[str] = []
    for name, one in twin.named_modules():
        one.register_forward_pre_hook(lambda *_, name=name: expected.append(f"forward_pre {name or '(network)'}"))
        one.register_forward_hook(lambda *_, name=name: expected.append(f"forward {name or '(network)'}"))
    stream = io.StringIO()
    with torch.no_grad(), hookviz.debug(net, stream):
        twin(images)
        net(images)
    assert [" ".join(line.split()[1:3]) for line in stream.getvalue().splitlines()] == expected


def test_the_first_nan_is_where_torchs_hooks_see_it_first(made: Made) -> None:
    """C36: planted in a parameter; every later output that is not finite merely passes it on."""
    layer, net, twin, images = made
    for one in (net, twin):
        with torch.no_grad():
            one.get_parameter(f"{layer}.bias")[0] = torch.nan
    bad: list[str] = []
    for name, module in twin.named_modules():
        module.register_forward_hook(
            lambda _, __, output, name=name: None if bool(output.isfinite().all()) else bad.append(name)
        )
    twin(images)
    report = hookviz.find_nonfinite(net, images)
    assert report.first is not None
    assert (report.first.layer, report.first.role, report.first.parameter) == (bad[0], "parameter", f"{layer}.bias")
    assert [site.layer for site in report.sites] == bad
    assert {site.role for site in report.sites[1:]} == {"passed_on"}


def test_gradient_norms_are_those_of_backward(made: Made) -> None:
    """C42, C46: in float64, read after backward; ``gradient_flow`` before it, ``GradientMonitor`` in the middle."""
    _, net, twin, images = made
    loss_of(twin(images)).backward()
    expected = {name: float(one.grad.double().norm()) for name, one in twin.named_parameters()}
    flow = hookviz.gradient_flow(net, loss_of(net(images)))
    assert {one.name: one.norm for one in flow.parameters} == pytest.approx(expected, rel=1e-12)
    with hookviz.GradientMonitor(net) as monitor:
        loss_of(net(images)).backward()
    assert monitor.last is not None
    assert {one.name: one.norm for one in monitor.last.parameters} == pytest.approx(expected, rel=1e-12)
    assert same(gradients(net), gradients(twin))


def test_clipping_by_norm_is_torchs(made: Made) -> None:
    """C47: float32 gradients scaled by a norm taken in float64."""
    _, net, twin, images = made
    loss_of(twin(images)).backward()
    norm = clip_grad_norm_(twin.parameters(), 0.5)
    with hookviz.clip_parameter_gradients(net, max_norm=0.5) as clipping:
        loss_of(net(images)).backward()
    assert clipping.last is not None
    assert clipping.last.norm == pytest.approx(float(norm), rel=1e-5)
    torch.testing.assert_close(gradients(net), gradients(twin), rtol=1e-5, atol=1e-9)


def test_clipping_by_value_is_torchs_to_the_last_bit(made: Made) -> None:
    _, net, twin, images = made
    loss_of(twin(images)).backward()
    clip_grad_value_(twin.parameters(), 1e-3)
    with hookviz.clip_parameter_gradients(net, max_value=1e-3):
        loss_of(net(images)).backward()
    assert same(gradients(net), gradients(twin))


def test_a_flowing_clamp_stops_at_the_layers_input(made: Made) -> None:
    """By hand: the layer is taken out of the graph, and its share of the gradient given on clamped."""
    layer, net, twin, images = made

    class Clamped(nn.Module):
        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, given: Tensor) -> Tensor:
            share = given.view_as(given)
            if share.requires_grad:
                share.register_hook(lambda gradient: gradient.clamp(-limit, limit))
            return self.inner(share)  # type: ignore[no-any-return]

    limit = float(seen_by_torch(copy.deepcopy(net), layer, images)[2].abs().mean())
    parent, _, child = layer.rpartition(".")
    setattr(twin.get_submodule(parent), child, Clamped(twin.get_submodule(layer)))
    loss_of(twin(images)).backward()
    with hookviz.clamp_flowing_gradients(net, layer, limit) as clamp:
        loss_of(net(images)).backward()
    expected = {name.replace(f"{layer}.inner.", f"{layer}."): one for name, one in gradients(twin).items()}
    assert same(gradients(net), expected)
    assert clamp.clamped[layer] > 0


def test_an_own_update_is_the_step_by_hand(made: Made) -> None:
    layer, net, twin, images = made
    loss_of(twin(images)).backward()
    with hookviz.own_update(net, layer, lr=0.1, l1=0.01, l2=0.02):
        loss_of(net(images)).backward()
    with torch.no_grad():
        for name, one in twin.get_submodule(layer).named_parameters():
            stepped = one - 0.1 * (one.grad + 0.01 * one.sign() + 0.02 * one)
            assert torch.equal(net.get_parameter(f"{layer}.{name}"), stepped)
            assert net.get_parameter(f"{layer}.{name}").grad is None
    others = {name for name, _ in twin.named_parameters() if not name.startswith(f"{layer}.")}
    assert all(torch.equal(net.get_parameter(name).grad, twin.get_parameter(name).grad) for name in others)


def test_an_activity_penalty_is_a_term_of_the_loss(made: Made) -> None:
    layer, net, twin, images = made
    net.double(), twin.double()
    kept: list[Tensor] = []
    twin.get_submodule(layer).register_forward_hook(lambda _, __, output: kept.append(output.clone()))
    output = twin(images.double())
    (loss_of(output) + 0.01 * kept[0].abs().sum()).backward()
    with hookviz.activity_penalty(net, layer, 0.01) as penalty:
        loss_of(net(images.double())).backward()
    torch.testing.assert_close(gradients(net), gradients(twin), rtol=1e-9, atol=1e-9)
    assert penalty.value == pytest.approx(0.01 * float(kept[0].detach().abs().sum()), rel=1e-12)


def test_a_teacher_gives_a_student_what_its_layer_returned(made: Made) -> None:
    """C61: the student's gradients are those of the loss by hand; the teacher gets none."""
    layer, net, twin, images = made
    _, outputs = clones_at_hook_time(twin, images)
    target = outputs[layer][0]
    student = nn.Sequential(nn.Conv2d(3, target.shape[1], 1), nn.ReLU(inplace=True))
    other = copy.deepcopy(student)
    with hookviz.distill(net, student, [(layer, "0")]) as hints:
        student(images)
        hints.loss().backward()
    F.mse_loss(F.adaptive_avg_pool2d(other[0](images), target.shape[-2:]), target).backward()
    assert same(gradients(student), gradients(other))
    assert all(one.grad is None for one in net.parameters())


def test_a_student_learns_from_what_its_layer_returned(made: Made) -> None:
    """C61, C01: before the in-place operation that follows; the gradients are not zero."""
    layer, net, twin, images = made
    kept: list[Tensor] = []
    twin.get_submodule(layer).register_forward_hook(lambda _, __, output: kept.append(output.clone()))
    twin(images)
    teacher = nn.Conv2d(3, kept[0].shape[1], 1)
    with hookviz.distill(teacher, net, [("", layer)]) as hints:
        net(images)
        hints.loss().backward()
    target = F.adaptive_avg_pool2d(teacher(images).detach(), (kept[0].shape[2], kept[0].shape[3]))
    F.mse_loss(kept[0], target).backward()
    assert same(gradients(net), gradients(twin))
    assert float(gradients(net)[f"{layer}.weight"].abs().max()) > 0  # type: ignore[union-attr]  # has one


def test_the_pruning_report_counts_what_torch_masked(made: Made) -> None:
    """C50"""
    _, net, _, _ = made
    convolutions = [name for name, one in net.named_modules() if isinstance(one, nn.Conv2d)]
    for name in convolutions:
        prune.l1_unstructured(net.get_submodule(name), "weight", 0.4)
    report = hookviz.pruning_report(net)
    for name in convolutions:
        mask = net.get_submodule(name).weight_mask
        assert report[f"{name}.weight"].sparsity == int((mask == 0).sum()) / mask.numel()
        prune.remove(net.get_submodule(name), "weight")
    assert report.count == sum(one.numel() for one in net.parameters())


def test_overwritten_outputs_are_those_that_detach_gets_wrong(made: Made) -> None:
    """C01: the textbook recipe keeps a reference; what differs from a clone was overwritten."""
    _, net, twin, images = made
    kept: dict[str, list[tuple[Tensor, Tensor]]] = {}

    def keep(name: str, output: Tensor) -> None:
        kept.setdefault(name, []).append((output.detach(), output.detach().clone()))

    for name, one in twin.named_modules():
        one.register_forward_hook(lambda _, __, output, name=name: keep(name, output))
    with torch.no_grad():
        twin(images)
    wrong = {name for name, calls in kept.items() if not all(torch.equal(*both) for both in calls)}
    with torch.no_grad(), hookviz.watch_overwrites(net) as overwrites:
        net(images)
    written = {one.layer for one in overwrites}
    assert wrong <= written
    for one in overwrites:
        assert torch.equal(one.naive, kept[one.layer][one.call][0])


def test_the_cost_in_bytes_is_that_of_all_outputs(made: Made) -> None:
    _, net, twin, images = made
    _, outputs = clones_at_hook_time(twin, images)
    expected = {name: sum(one.numel() * 4 for one in calls) for name, calls in outputs.items()}
    assert hookviz.hook_cost(net, images, pairs=1).by_layer == expected


def test_layers_are_listed_with_the_shapes_torchs_hooks_see(made: Made) -> None:
    _, net, twin, images = made
    _, outputs = clones_at_hook_time(twin, images)
    listed = hookviz.list_layers(net, images)
    assert {one.name: one.calls for one in listed} == {
        name: len(outputs.get(name, ())) for name, _ in twin.named_modules()
    }
    assert sum(one.parameters for one in listed if one.name == "") == sum(one.numel() for one in twin.parameters())


def test_the_estimate_is_torchs_own_count(made: Made) -> None:
    _, net, twin, images = made
    found = hookviz.estimate(net, images)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        twin(images)
    assert (found.parameters, found.flops) == (sum(one.numel() for one in twin.parameters()), counter.get_total_flops())


def test_hooks_on_every_layer_are_listed_and_removed(made: Made) -> None:
    _, net, _, _ = made
    names = [name for name, _ in net.named_modules()]
    with hookviz.attach(net, {"*": lambda *_: None}):
        assert sorted(one.layer or "" for one in hookviz.list_hooks(net)) == sorted(names)
        assert len(hookviz.remove_hooks(net)) == len(names)
        assert hook_count(net) == 0


def test_the_lint_warns_of_full_backward_hooks_exactly_where_torch_raises(made: Made) -> None:
    """C07"""
    layer, net, twin, images = made
    twin.get_submodule(layer).register_full_backward_hook(lambda *_: None)
    try:
        twin(images)
        raised = False
    except RuntimeError:
        raised = True
    with hookviz.attach(net, {layer: lambda *_: None}, "backward", emulate=False):
        assert [one.kind for one in hookviz.lint_hooks(net, images)] == ["in place"] * raised
    assert raised == (layer != LAYERS["simple_cnn"])
