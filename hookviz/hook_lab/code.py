"""PyTorch code that does what an experiment does, to run anywhere."""

from __future__ import annotations

import re

from hookviz.hook_lab.experiment import Experiment
from hookviz.hook_lab.loading_code import LoadingCode, sorted_imports
from hookviz.hooks.hook_kinds import REGISTER

_ARGUMENTS = {
    "forward": "module, args, output",
    "forward_pre": "module, args",
    "backward": "module, grad_input, grad_output",
    "backward_pre": "module, grad_output",
}


def hook_code(experiment: Experiment, loading: LoadingCode, dimensions: int, *, emulated: bool = False) -> str:
    """A script that loads the network, registers the hook, runs, removes the hook, and prints what came out.

    It leaves ``logits`` (for networks that return them as a tensor) and, after a backward hook, the gradient of the
    network's input behind.

    Args:
        experiment: as it was run, its channels numbers or None.
        loading: how the network is loaded.
        dimensions: how many axes the tensor has that the hook changes.
        emulated: set backward hooks on tensors, where torch's own raise.
    """
    imports = [*loading.imports, *_function_import(experiment)]
    function = [] if experiment.action == "function" else [_function(experiment, dimensions)]
    parts = [
        sorted_imports("\n".join(imports)),
        loading.statements,
        *function,
        _registered(experiment, emulated=emulated),
        _run(experiment, loading),
        _printed(experiment, loading),
    ]
    return re.sub(r"\n{4,}", "\n\n\n", "\n\n".join(parts)) + "\n"


def _function_import(experiment: Experiment) -> list[str]:
    if experiment.action != "function":
        return []
    module, _, name = experiment.function.partition(":")
    return [f"from {module} import {name.partition('.')[0]}"]


def _hook_name(experiment: Experiment) -> str:
    return experiment.function.partition(":")[2] if experiment.action == "function" else "hook"


def _function(experiment: Experiment, dimensions: int) -> str:
    body = "\n".join(f"    {line}" for line in _body(experiment, dimensions))
    return f"\ndef hook({_ARGUMENTS[experiment.kind]}):\n{body}\n"


def _body(experiment: Experiment, dimensions: int) -> list[str]:
    whole = experiment.replaces
    tensor = whole if experiment.kind == "forward" else f"{whole}[0]"
    if experiment.action == "look":
        return [f"print(type(module).__name__, tuple({tensor}.shape), {tensor}.dtype)"]
    if experiment.action == "not_returned":
        return [
            f"changed = {tensor} * 0",
            "# Nothing is returned, so the network goes on with what it had.",
        ]
    axis = experiment.axis(dimensions)
    index = ", ".join([":"] * axis + [str(list(experiment.channels or ()))])
    if experiment.action == "in_place":
        where = tensor if experiment.channels is None else f"{tensor}[{index}]"
        return [f"{where}.zero_()" if experiment.channels is None else f"{where} = 0  # writes into the very memory"]
    changed = _changed(experiment, tensor, axis, dimensions)
    if experiment.channels is None:
        lines = [*changed[:-1], f"changed = {changed[-1]}"]
    else:
        lines = [*changed[:-1], f"changed = {tensor}.clone()", f"changed[{index}] = ({changed[-1]})[{index}]"]
        if experiment.action == "zero":
            lines[-1] = f"changed[{index}] = 0"
    return [*lines, "return changed" if experiment.kind == "forward" else f"return (changed, *{whole}[1:])"]


def _changed(experiment: Experiment, tensor: str, axis: int, dimensions: int) -> list[str]:
    """Statements, and last an expression for the changed tensor."""
    strength = experiment.strength
    match experiment.action:
        case "scale":
            return [f"{tensor} * {strength!r}"]
        case "noise":
            return [
                f"generator = torch.Generator({tensor}.device).manual_seed(0)",
                f"noise = torch.randn({tensor}.shape, generator=generator, device={tensor}.device)",
                f"{tensor} + {strength!r} * noise",
            ]
        case "clamp":
            return [f"{tensor}.clamp({-strength!r}, {strength!r})"]
        case "mean":
            positions = [other for other in range(1, dimensions) if other != axis]
            return [f"{tensor}.mean({positions}, keepdim=True).expand_as({tensor}).contiguous()"]
        case _:
            return [f"torch.zeros_like({tensor})"]


def _registered(experiment: Experiment, *, emulated: bool) -> str:
    layer = f'layer = model.get_submodule("{experiment.layer}")' if experiment.layer else "layer = model"
    name = _hook_name(experiment)
    if not emulated:
        return f"{layer}\nhandles = [layer.{REGISTER[experiment.kind]}({name})]"
    return f"{_ON_TENSORS[experiment.kind].format(hook=name)}\n\n{layer}\n{_ON_TENSORS_REGISTER[experiment.kind]}"


_WHY = """\

# An operation writes in place into what this layer takes or returns, where torch's full backward hooks raise:
# hooks on the tensors themselves get the same gradients."""

_ON_TENSORS = {
    "backward": _WHY
    + """
arrived = {{}}


def watch_input(module, args):
    alone = args[0].clone()  # what else uses this tensor keeps its own gradient

    def replace(grad):
        answer = {hook}(module, (grad,), arrived["grad_output"])
        return None if answer is None else answer[0]

    alone.register_hook(replace)
    return (alone, *args[1:])


def watch_output(module, args, output):
    output.register_hook(lambda grad: arrived.update(grad_output=(grad,)))

""",
    "backward_pre": _WHY
    + """
def watch_output(module, args, output):
    def replace(grad):
        answer = {hook}(module, (grad,))
        return None if answer is None else answer[0]

    output.register_hook(replace)

""",
}
_ON_TENSORS_REGISTER = {
    "backward": ("handles = [layer.register_forward_pre_hook(watch_input), layer.register_forward_hook(watch_output)]"),
    "backward_pre": "handles = [layer.register_forward_hook(watch_output)]",
}


def _run(experiment: Experiment, loading: LoadingCode) -> str:
    if not experiment.is_backward:
        run = [f"with torch.no_grad():\n        logits = model({loading.call})"]
    else:
        run = [f"logits = model({loading.call})", *_loss(experiment), "loss.backward()"]
    body = "\n".join(f"    {line}" for line in run)
    start = f"{loading.leaf}.requires_grad_()\n" if experiment.is_backward else ""
    return f"{start}try:\n{body}\nfinally:\n    for handle in handles:\n        handle.remove()"


def _loss(experiment: Experiment) -> list[str]:
    target = experiment.loss.target
    chosen = "int(logits.argmax())" if target is None else str(target)
    if experiment.loss.kind == "logit":
        return [f"loss = logits[0, {chosen}]"]
    return [f"loss = torch.nn.functional.cross_entropy(logits, torch.tensor([{chosen}], device=logits.device))"]


def _printed(experiment: Experiment, loading: LoadingCode) -> str:
    if experiment.is_backward:
        return f'print(f"norm of the input\'s gradient: {{{loading.leaf}.grad.norm():.4g}}")'
    if not loading.classifies:
        return "print(logits)"
    return """\
top = logits.softmax(1)[0].topk(min(5, logits.shape[1]))
for share, index in zip(top.values, top.indices):
    print(f"{share:.1%}  class {index}")"""
