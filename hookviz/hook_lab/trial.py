"""Running a network without a hook and with it."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.errors import HookvizError
from hookviz.hook_lab.experiment import Experiment, HookLabError
from hookviz.hook_lab.lab_hook import first_tensor, make_hook
from hookviz.hook_lab.memory import Owners
from hookviz.hook_lab.own_copy import logits_of, loss_of, own_copy, own_inputs
from hookviz.hook_lab.witness import Seen, Witness
from hookviz.hooks import Firing, attach, record, trace
from hookviz.hooks.names import LayerNames
from hookviz.hooks.preserve import random_state_kept
from hookviz.hooks.structure import leaves


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What one run gave.

    ``logits`` is (1, classes), None for a network that gives no classes. ``norms`` has, after a backward run, the norm
    of the gradient that reached each layer's output, in the order of the forward, and ``input_gradient`` the gradient
    of the network's input.
    """

    logits: Tensor | None
    norms: dict[str, float]
    input_gradient: Tensor | None


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """A network without a hook and with it.

    ``experiment`` is the one that was run, its channels numbers. ``seen`` has every call of the hook. ``emulated``
    says that the hook was set on tensors, since torch's own backward hook raises on this layer. ``overwritten`` names
    those whose memory an in-place hook wrote into.
    """

    experiment: Experiment
    before: Outcome
    after: Outcome
    seen: tuple[Seen, ...]
    emulated: bool = False
    overwritten: tuple[str, ...] = ()


def try_hook(module: nn.Module, arguments: tuple[Any, ...], experiment: Experiment) -> Trial:
    """Run a copy of a network without and with the hook of an experiment; the network itself is left alone.

    Args:
        module: the network; it is run in eval mode.
        arguments: what it is called with, on its device.
        experiment: the hook.

    Raises:
        HookLabError: the experiment does not fit the layer, or the run with the hook broke off.
        UnknownLayerError: there is no such layer.
    """
    run = _Run(own_copy(module), arguments, experiment)
    looking = Witness(_look, experiment.kind)
    try:
        before = run.outcome(looking)
    except _WrittenInPlaceError:
        run, looking = replace(run, emulate=True), Witness(_look, experiment.kind)
        before = run.outcome(looking)
    resolved = _with_numbers(experiment, looking)
    owners = Owners() if resolved.action == "in_place" and not experiment.is_backward else None
    acting = Witness(make_hook(resolved), experiment.kind, owners)
    after = run.outcome(acting, owners)
    return Trial(resolved, before, after, tuple(acting.seen), run.emulate, () if owners is None else owners.found)


def list_firings(module: nn.Module, arguments: tuple[Any, ...], experiment: Experiment) -> list[Firing]:
    """Every firing of a hook of its kind's pass, forward alone or forward and backward, on a copy of a network."""
    copy, backward = own_copy(module), experiment.is_backward
    inputs = own_inputs(arguments, gradients=backward)
    return trace(copy, *inputs, loss=(lambda output: loss_of(output, experiment.loss)) if backward else None)


def _look(*_: Any) -> None:
    """What a hook does that changes nothing."""


class _WrittenInPlaceError(HookLabError):
    """Torch's own backward hook raised, since an operation writes in place into what the layer takes or returns."""


def _with_numbers(experiment: Experiment, looking: Witness) -> Experiment:
    if experiment.channels != "strongest":
        return experiment
    tensor = looking.seen[0].before if looking.seen else None
    if tensor is None or not tensor.ndim:
        return replace(experiment, channels=None)
    axis = experiment.axis(tensor.ndim)
    others = [other for other in range(tensor.ndim) if other != axis]
    sizes = tensor.abs().double()
    return replace(experiment, channels=(int((sizes.mean(others) if others else sizes).argmax()),))


@dataclass(frozen=True, slots=True)
class _Run:
    """One copy of a network that is run twice on the same input."""

    copy: nn.Module
    arguments: tuple[Any, ...]
    experiment: Experiment
    emulate: bool = False

    def outcome(self, witness: Witness, owners: Owners | None = None) -> Outcome:
        kind, layer = self.experiment.kind, self.experiment.layer
        inputs = own_inputs(self.arguments, gradients=self.experiment.is_backward)
        with (
            random_state_kept(self.copy),
            nullcontext() if owners is None else owners.watching(self.copy, inputs),
            attach(self.copy, {layer: witness}, kind, emulate=self.emulate),
        ):
            try:
                return self._backward(inputs) if self.experiment.is_backward else self._forward(inputs)
            except HookvizError:
                raise
            except RuntimeError as error:
                if "BackwardHookFunction" not in str(error):
                    raise HookLabError(_broken_off(error, witness, layer)) from error
                raise _WrittenInPlaceError(_broken_off(error, witness, layer)) from error
            except Exception as error:  # a hook may be anybody's code, and may return what does not fit
                raise HookLabError(_broken_off(error, witness, layer)) from error
            finally:
                self.copy.zero_grad(set_to_none=True)

    def _forward(self, inputs: tuple[Any, ...]) -> Outcome:
        with torch.no_grad():
            return Outcome(_detached(logits_of(self.copy(*inputs))), {}, None)

    def _backward(self, inputs: tuple[Any, ...]) -> Outcome:
        with torch.enable_grad(), record(self.copy, gradients=True, keep=_norm) as rec:
            output = self.copy(*inputs)
            loss_of(output, self.experiment.loss).backward()
        names = [name for name in LayerNames(self.copy) if name in rec]
        norms = {name: _together([call.grad_output for call in rec[name]]) for name in names}
        tensor = first_tensor(inputs)
        return Outcome(
            _detached(logits_of(output)),
            {name: norm for name, norm in norms.items() if norm is not None},
            None if tensor is None else tensor.grad,
        )


def _norm(tensor: Tensor) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(tensor.double())
    return norm


def _together(gradients: list[Any]) -> float | None:
    parts = [norm for gradient in gradients for _, norm in leaves(gradient, Tensor)]
    return float(torch.stack(parts).square().sum().sqrt()) if parts else None


def _detached(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.detach().clone()


def _broken_off(error: Exception, witness: Witness, layer: str) -> str:
    reason = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no words'}"
    where = layer or "the network"
    if witness.failed:
        return f"the hook on {where} raised {reason.rstrip('.')}; every hook is off again, and the network as before."
    return f"with the hook on {where} the run broke off with {reason.rstrip('.')}; the network is as before."
