from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, fx, nn

import hookviz
from examples import intervene_twice
from hookviz.errors import HookvizError
from hookviz.hooks import HookHandles
from tests.hooks.uses import USES, expected, nothing
from tests.nets import hook_count, same


class SmallNet(nn.Module):
    """In place, residual and concatenating, in small."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3)
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)
        self.head = nn.Linear(8, 2)

    def forward(self, images: Tensor) -> Tensor:
        features = self.relu(self.stem(images))
        features = self.relu(self.conv(features) + features)
        features = torch.cat([features, features * 2], 1)
        return self.head(features.mean((2, 3)))  # type: ignore[no-any-return]


def small_net() -> nn.Module:
    torch.manual_seed(0)
    return SmallNet().eval()


def images() -> Tensor:
    return torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))


def compiled_and_run(net: nn.Module) -> Any:
    compiled: Any = torch.compile(net, backend="eager")
    compiled(images())
    return compiled


def compiled_in_place(net: nn.Module) -> Any:
    net.compile(backend="eager")
    net(images())
    return net


def another_compiled_earlier(net: nn.Module) -> Any:
    compiled_and_run(small_net())
    return net


WAYS: list[Callable[[nn.Module], Any]] = [compiled_and_run, compiled_in_place, another_compiled_earlier]


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch.set_num_threads(1)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("use", USES)
def test_every_function_gives_of_a_compiled_network_what_it_gives_of_the_eager_one(
    use: str, way: Callable[[nn.Module], Any]
) -> None:
    """C25: compiled code does not notice hooks; whatever was compiled before, the eager original is looked at."""
    net = small_net()
    wanted = expected(USES[use], net, images())
    assert same(USES[use](way(net), images(), nothing), wanted)
    assert hook_count(net) == 0


def test_the_eager_network_is_named_and_the_compiled_one_called() -> None:
    """C25: hooks go on the original, whichever of the two is given, and the compiled one runs them."""
    net, inputs = small_net(), images()
    compiled: Any = compiled_and_run(net)
    wanted = expected(USES["attach_forward"], net, inputs)
    with hookviz.attach(net, {"conv": lambda _, __, output: output * 2}):
        assert torch.equal(compiled(inputs), wanted)
    with hookviz.edit(net, {"conv": hookviz.Scale(2)}):
        assert torch.equal(compiled(inputs), wanted)
    with hookviz.watch_overwrites(net, "stem") as overwrites:
        compiled(inputs)
    assert [one.by for one in overwrites] == ["relu"]


def test_hooks_attached_before_compiling_are_gone_from_compiled_code_afterwards() -> None:
    """C25: compiled inside the block, run outside of it."""
    net, calls = small_net(), []
    wanted = net(images())
    with hookviz.attach(net, {"stem": lambda *_: calls.append(1)}):
        compiled: Any = torch.compile(net, backend="eager")
        compiled(images())
    assert calls == [1]
    assert torch.equal(compiled(images()), wanted)
    assert calls == [1]


def test_an_edit_made_before_compiling_is_gone_from_compiled_code_afterwards() -> None:
    """C25, C58: nothing is baked in."""
    net = small_net()
    wanted = net(images())
    with hookviz.edit(net, {"stem": hookviz.Zero()}):
        compiled: Any = torch.compile(net, backend="eager")
        edited = compiled(images())
    assert not torch.equal(edited, wanted)
    assert torch.equal(compiled(images()), wanted)


def test_compiled_code_is_used_again_after_attach() -> None:
    graphs: list[int] = []

    def backend(graph: fx.GraphModule, _: Any) -> Any:
        graphs.append(1)
        return graph.forward

    net = small_net()
    compiled: Any = torch.compile(net, backend=backend)
    with hookviz.attach(compiled, {"stem": lambda *_: None}), hookviz.attach_global(lambda *_: None):
        compiled(images())
    assert graphs == []
    compiled(images())
    assert graphs == [1]


@cache
def scripted() -> Any:
    return torch.jit.script(small_net())


@cache
def traced() -> Any:
    return torch.jit.trace(small_net(), images(), check_trace=False)


@pytest.mark.parametrize("use", USES)
def test_a_scripted_network_is_refused_in_one_sentence(use: str) -> None:
    """C54: torch would refuse hooks with a sentence of its own, or ignore eager ones silently."""
    if use == "attach_global":  # names no network
        assert USES[use](scripted(), images(), nothing) == ["RecursiveScriptModule"]  # torch runs the root's alone
        return
    with pytest.raises(HookvizError, match=r"^a TorchScript module has no Python layers.*nn\.Module it was made from"):
        USES[use](scripted(), images(), nothing)


@pytest.mark.parametrize("use", sorted(set(USES) - {"attach_global"}))
def test_a_traced_network_is_refused_in_one_sentence(use: str) -> None:
    """C54: what ``torch.jit.trace`` gives is TorchScript too."""
    with pytest.raises(HookvizError, match="pass the"):
        USES[use](traced(), images(), nothing)


def test_a_scripted_part_keeps_its_hooks_at_its_border() -> None:
    """C54: what works, works: the scripted child is one layer, whose inside no hook can see."""
    net = small_net()
    wanted = net(images())
    net.add_module("head", torch.jit.script(net.get_submodule("head")))
    with hookviz.edit(net, {"stem": hookviz.Scale(1.0)}), hookviz.record(net, ["stem", "conv"]) as rec:
        assert torch.equal(net(images()), wanted)
    assert list(rec) == ["stem", "conv"]


NEEDS_HOOKS_ON_EVERY_LAYER = {
    "record",
    "record_operations",
    "trace",
    "debug",
    "find_nonfinite",
    "gradient_monitor",
    "watch_overwrites",
    "hook_cost",
    "list_layers",
    "estimate",
}


@pytest.mark.parametrize("use", USES)
def test_around_a_scripted_part_what_needs_no_hook_on_it_works(use: str) -> None:
    """C54: the rest is one sentence, and leaves nothing behind."""
    net = small_net()
    wanted = None if use in NEEDS_HOOKS_ON_EVERY_LAYER else expected(USES[use], net, images())
    net.add_module("head", torch.jit.script(net.get_submodule("head")))
    if use in NEEDS_HOOKS_ON_EVERY_LAYER:
        with pytest.raises(HookvizError, match=r"^torch refuses hooks on this [^\n]*pass the original nn\.Module"):
            USES[use](net, images(), nothing)
    elif use != "attach_global":  # which names the classes it met
        assert same(USES[use](net, images(), nothing), wanted)
    assert hook_count(net) == 0


def test_tracing_inside_attach_calls_the_hook_and_bakes_nothing_in_afterwards() -> None:
    """C54: attached hooks are torch's own and take part in tracing; the trace made after the block has none."""
    net = small_net()
    wanted = net(images())
    with hookviz.attach(net, {"stem": lambda _, __, output: output * 0}):
        pass
    afterwards = torch.jit.trace(net, images(), check_trace=False)
    assert torch.equal(afterwards(images()), wanted)


def test_an_fx_graph_is_a_network_like_any_other() -> None:
    """C55: its modules keep their names, and hooks fire on them."""
    net = small_net()
    graph = fx.symbolic_trace(net)
    edits = {"stem": hookviz.Zero(1)}
    with hookviz.edit(net, edits):
        wanted = net(images())
    with hookviz.edit(graph, edits):
        assert torch.equal(graph(images()), wanted)


def test_the_example_intervenes_twice_with_equal_results(capsys: pytest.CaptureFixture[str]) -> None:
    """C55: by hook and by torch.fx, to the last bit, and as multiplying by hand has it."""
    model = hookviz.load_model("simple_cnn", device="cpu")
    net, inputs = model.module, model.prepare(hookviz.load_sample("digit_8"))

    def by_hand(images: Tensor) -> Tensor:
        features = net.pool(torch.relu(net.conv1(images)))  # type: ignore[operator]
        features = net.conv2(features).clone()  # type: ignore[operator]
        features[:, 3] = 0
        hidden = torch.relu(net.fc1(net.pool(torch.relu(features)).flatten(1)))  # type: ignore[operator]
        return net.fc2(hidden)  # type: ignore[no-any-return, operator]

    with torch.no_grad():
        hooked = intervene_twice.by_hook(net, inputs)
        assert torch.equal(hooked, intervene_twice.by_fx(net)(inputs))
        assert torch.equal(hooked, by_hand(inputs))
        assert not torch.equal(hooked, net(inputs))
    assert "switched_off" not in net.state_dict()
    intervene_twice.main()
    assert capsys.readouterr().out.count("True") == 2


def test_the_example_says_when_to_use_which() -> None:
    text = ast.get_docstring(ast.parse(Path(inspect.getfile(intervene_twice)).read_text())) or ""
    assert "Use it where the change is for a while" in text
    assert "Use it where the change is\n  to stay" in text


def test_a_handle_refuses_scripted_modules() -> None:
    """C54: the sentence names the way out."""
    with HookHandles() as handles, pytest.raises(HookvizError, match=r"pass the original nn\.Module"):
        handles.add(scripted(), lambda *_: None, "forward")
