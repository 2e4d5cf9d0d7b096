"""Watching the gradients of a training loop."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from types import TracebackType
from typing import Any

from torch import Tensor, nn

from hookviz.errors import HookvizError
from hookviz.hooks.attach import BoundHook, HookHandles
from hookviz.hooks.backward_passes import BackwardPasses
from hookviz.hooks.compiled import run_eagerly
from hookviz.hooks.frames import is_backward
from hookviz.hooks.gradient_flow import GradientFlow, Measured, Verdict, assemble, measure, own_parameters
from hookviz.hooks.names import LayerNames


class GradientMonitor:
    """Measures the parameters' gradients whenever a backward pass has delivered them.

    >>> with GradientMonitor(model, every=10) as monitor:
    ...     for images, targets in batches:
    ...         train_step(images, targets)
    >>> monitor.last["conv1"].norm, monitor.verdicts["conv1"]["vanishing"]

    What is measured is ``.grad`` when the pass's gradient has been added to it: where gradients of several passes are
    accumulated, their sum so far, which is what the optimizer would use. Memory does not grow with the number of
    passes. A layer that ran, or a parameter of it, to which no gradient came is ``"none arrived"``; one that did not
    run is ``"unused"``.

    Args:
        module: the network; run forward and backward inside the block.
        every: measure the first pass and every n-th after it.

    Attributes:
        last: the ``GradientFlow`` last measured, None before the first.
        passes: how many backward passes there were.
        measured: how many of them were measured.
        verdicts: for each layer, how often each verdict was given.
        smallest: for each layer, the smallest norm measured.
        largest: for each layer, the largest.

    Raises:
        HookvizError: ``every`` is not a positive whole number.
    """

    def __init__(self, module: nn.Module, *, every: int = 1) -> None:
        if every < 1:
            raise HookvizError("measure every pass (every=1) or every n-th; every must be at least 1.")
        self.last: GradientFlow | None = None
        self.passes = 0
        self.measured = 0
        self.verdicts: dict[str, Counter[Verdict]] = defaultdict(Counter)
        self.smallest: dict[str, float] = {}
        self.largest: dict[str, float] = {}
        self._names = LayerNames(module)
        self._every = every
        self._eager = run_eagerly()
        self._handles = HookHandles()
        self._uses: dict[int, int] = {}
        self._arrived: dict[int, Measured | None] = {}

    def __enter__(self) -> GradientMonitor:
        self._eager.__enter__()
        try:
            self._install()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._handles.remove()
        self._eager.__exit__(kind, error, traceback)

    def _install(self) -> None:
        root = self._names.root
        self._handles.add(root, BoundHook(root, self._begin), "forward_pre")
        passes = BackwardPasses(root, self._handles, self._finish)
        for name, own in own_parameters(self._names):
            layer = self._names[name]
            self._handles.add(layer, BoundHook(layer, partial(self._use, list(own.values()))), "forward_pre")
            for parameter in own.values():
                if parameter.requires_grad:
                    self._handles.add_post_accumulate(parameter, partial(self._arrive, passes))

    def _begin(self, *_: Any) -> None:
        if not is_backward():
            self._uses.clear()
            self._arrived.clear()

    def _use(self, parameters: list[nn.Parameter], *_: Any) -> None:
        for one in parameters:
            self._uses.setdefault(id(one), len(self._uses))

    def _arrive(self, passes: BackwardPasses, parameter: Tensor) -> None:
        passes.delivers()
        is_due = self.passes % self._every == 0
        gradient = parameter.grad
        self._arrived[id(parameter)] = measure(gradient) if is_due and gradient is not None else None

    def _finish(self) -> None:
        if not self._arrived:  # gradients were taken without being accumulated
            return
        measured = {key: one for key, one in self._arrived.items() if one is not None}
        self._arrived.clear()
        if self.passes % self._every == 0:
            self._note(assemble(self._names, measured, self._uses))
        self.passes += 1

    def _note(self, flow: GradientFlow) -> None:
        self.last = flow
        self.measured += 1
        for layer in flow.layers:
            self.verdicts[layer.name][layer.verdict] += 1
            if layer.norm is not None:
                self.smallest[layer.name] = min(layer.norm, self.smallest.get(layer.name, layer.norm))
                self.largest[layer.name] = max(layer.norm, self.largest.get(layer.name, layer.norm))
