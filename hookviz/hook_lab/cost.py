"""What a hook costs, measured."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from hookviz.hook_lab.experiment import Experiment, HookLabError
from hookviz.hook_lab.lab_hook import make_hook
from hookviz.hook_lab.own_copy import own_copy, own_inputs
from hookviz.hooks import HookCost, attach, hook_cost
from hookviz.hooks.preserve import random_state_kept


@dataclass(frozen=True, slots=True)
class LabCost:
    """The fastest forward without and with a hook, in seconds, and what recording the layer costs.

    The fastest, since whatever else the machine does only slows them.
    """

    plain: float
    hooked: float
    recording: HookCost

    @property
    def ratio(self) -> float:
        """How many times as long a forward takes with the hook."""
        return self.hooked / self.plain


def measure_cost(module: nn.Module, arguments: tuple[Any, ...], experiment: Experiment, *, pairs: int = 10) -> LabCost:
    """Time forwards of a copy of a network without and with a forward hook, in turns, and recording its layer.

    Args:
        module: the network.
        arguments: what it is called with.
        experiment: as it was run, its channels numbers or None.
        pairs: how many forwards of each; one more comes before and is not timed.

    Raises:
        HookLabError: a backward hook, or ``pairs`` below 1.
    """
    if experiment.is_backward or pairs < 1:
        raise HookLabError("what a hook costs is measured on forward hooks, in one pair of forwards at least.")
    copy, hook = own_copy(module), make_hook(experiment)

    def seconds(*, hooked: bool) -> float:
        inputs = own_inputs(arguments, gradients=False)
        with attach(copy, {experiment.layer: hook} if hooked else {}, experiment.kind):
            start = time.perf_counter()
            copy(*inputs)
            if torch.cuda.is_initialized():
                torch.cuda.synchronize()
            return time.perf_counter() - start

    with random_state_kept(copy), torch.no_grad():
        timed = [(seconds(hooked=False), seconds(hooked=True)) for _ in range(pairs + 1)][1:]
    return LabCost(
        plain=min(plain for plain, _ in timed),
        hooked=min(hooked for _, hooked in timed),
        recording=hook_cost(copy, *arguments, layers=[experiment.layer], pairs=pairs),
    )
