"""Teaching a student network by the features of a teacher."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from hookviz.errors import AmbiguousCallError, GradientError, HookvizError
from hookviz.hooks.attach import BoundHook, HookHandles
from hookviz.hooks.compiled import run_eagerly
from hookviz.hooks.feature_losses import FEATURE_LOSSES, FeatureLoss, adapter_for, same_size
from hookviz.hooks.frames import is_backward
from hookviz.hooks.names import LayerNames
from hookviz.hooks.preserve import preserved
from hookviz.hooks.record import record
from hookviz.hooks.recording import Recording
from hookviz.hooks.snapshot import snapshot
from hookviz.hooks.structure import leaves, map_leaves


@dataclass(frozen=True, slots=True)
class Feature:
    """One end of a pair: a layer's ``"output"`` or ``"input"``, and which call of a layer that runs more than once.

    The first tensor counts where there are several. Calls count from 0, negative ones from the last.
    """

    layer: str
    side: Literal["output", "input"] = "output"
    call: int | None = None

    def __str__(self) -> str:
        call = "" if self.call is None else f", call {self.call}"
        return f"the {self.side} of {self.layer!r}{call}"


End: TypeAlias = str | Feature
Adapt: TypeAlias = Literal["auto", "none"] | nn.ModuleDict


@contextmanager
def distill(
    teacher: nn.Module,
    student: nn.Module,
    pairs: Sequence[tuple[End, End]],
    *,
    adapt: Adapt = "auto",
    loss: FeatureLoss = "mse",
) -> Iterator[Distillation]:
    """Compare a student's features with a teacher's, pair by pair, whenever the student runs.

    >>> with distill(teacher, student, [("layer2", "conv2"), (Feature("layer1.0.relu", call=1), "conv1")]) as hints:
    ...     hints.prepare(images[:1])  # makes the adapters
    ...     optimizer = torch.optim.Adam([*student.parameters(), *hints.adapters.parameters()])
    ...     logits = student(images)  # the teacher sees the same images, in eval mode and without gradients
    ...     (criterion(logits, targets) + 0.1 * hints.loss()).backward()

    Features are as they were when their layer returned or was called, whatever in-place operation follows; the
    student's carry their graph. The teacher is left as it was found: modes, buffers, gradients, random state.

    Args:
        teacher: the network that knows; it takes what the student takes.
        student: the network that learns; run it inside the block. Its features inside a re-entrant checkpoint have no
            graph.
        pairs: (the teacher's end, the student's end), each a layer's name, which is its output, or a ``Feature``.
        adapt: how channels are matched, sizes being matched by average pooling to the smaller of the two. ``"auto"``
            makes a 1x1 convolution (a linear layer for vectors and tokens) from the student's to the teacher's where
            their numbers differ, ``"none"`` refuses such pairs, and a ``ModuleDict`` brings modules for the student's
            features, by the pair's number (``"0"``).
        loss: ``"mse"``; ``"cosine"``, 1 less the cosine between channels at each place; or ``"attention"``, the squared
            difference of normalized maps of mean squares over channels (Zagoruyko and Komodakis, arXiv:1612.03928),
            which needs no adapters.

    Returns:
        A context manager that gives a ``Distillation``.

    Raises:
        UnknownLayerError: a layer that does not exist.
        HookvizError: no pairs, or another loss.
    """
    if loss not in FEATURE_LOSSES:
        raise HookvizError(f"no feature loss {loss!r}; choose one of {', '.join(FEATURE_LOSSES)}.")
    if not pairs:
        raise HookvizError("give at least one pair (teacher's layer, student's layer).")
    names = LayerNames(student)
    ends = [(_end(LayerNames(teacher), one), _end(names, other)) for one, other in pairs]
    distillation = Distillation(teacher, student, ends, adapt, loss)
    with run_eagerly(), HookHandles() as handles:
        distillation._install(names, handles)
        try:
            yield distillation
        finally:
            distillation._forget()


def _end(names: LayerNames, end: End) -> Feature:
    feature = Feature(end) if isinstance(end, str) else end
    if feature.side not in {"output", "input"}:
        raise HookvizError(f"a layer has an 'output' and an 'input', no {feature.side!r}.")
    return Feature(names.canonical(feature.layer), feature.side, feature.call)


@dataclass(frozen=True, slots=True)
class _Live:
    """A student's feature with its graph, if there was one."""

    value: Tensor | None
    had_graph: bool


class Distillation:
    """An open distillation.

    ``adapters`` are the trainable modules between the student's features and the teacher's, by the pair's number; they
    exist after ``prepare`` or after the first loss. ``teacher_output`` is what the teacher said in the last run.
    """

    def __init__(
        self, teacher: nn.Module, student: nn.Module, ends: list[tuple[Feature, Feature]], adapt: Adapt, loss: str
    ) -> None:
        self.adapters = adapt if isinstance(adapt, nn.ModuleDict) else nn.ModuleDict()
        self.teacher_output: Any = None
        self._teacher = teacher
        self._student = student
        self._ends = ends
        self._makes_adapters = adapt == "auto" and loss != "attention"
        self._needs_channels = loss != "attention"
        self._loss: Callable[[Tensor, Tensor], Tensor] = FEATURE_LOSSES[loss]
        self._targets: list[Tensor] = []
        self._live: dict[tuple[str, str], list[_Live]] = defaultdict(list)
        self._teaching = False

    def prepare(self, *args: Any, **kwargs: Any) -> None:
        """Run both networks once on an example, so that ``adapters`` exist before an optimizer is made.

        The student runs in eval mode without gradients and is left as it was found.
        """
        with preserved(self._student):
            self._student(*args, **kwargs)
        with torch.no_grad():
            self.losses()
        self._forget()

    def losses(self) -> tuple[Tensor, ...]:
        """Each pair's loss in the student's last run.

        Raises:
            HookvizError: the student has not run, or two features do not fit together.
            AmbiguousCallError: a layer ran more than once and the pair does not say which call.
            GradientError: a student's layer ran without gradients although they are wanted now.
        """
        if not self._targets:
            raise HookvizError("run the student inside the `with` block first.")
        return tuple(self._pair_loss(number) for number in range(len(self._ends)))

    def loss(self) -> Tensor:
        """The sum of ``losses()``."""
        return torch.stack(self.losses()).sum()

    def _pair_loss(self, number: int) -> Tensor:
        end = self._ends[number][1]
        live: _Live = _pick(self._live[end.layer, end.side], end)
        if live.value is None:
            raise HookvizError(f"{end} of the student holds no tensor; choose another layer.")
        if torch.is_grad_enabled() and not live.had_graph:
            raise GradientError(
                f"{end} of the student ran without gradients; leave torch.no_grad() and re-entrant checkpoints."
            )
        target = self._targets[number].to(live.value)
        feature, target = self._adapted(str(number), live.value, target)
        return self._loss(feature, target)

    def _adapted(self, key: str, feature: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        if self._makes_adapters and key not in self.adapters:
            adapter = adapter_for(feature, target)
            if adapter is not None:
                self.adapters[key] = adapter
        if key in self.adapters:
            feature = self.adapters[key](feature)
        return same_size(feature, target, channels=self._needs_channels)

    def _install(self, names: LayerNames, handles: HookHandles) -> None:
        handles.add(names.root, BoundHook(names.root, self._begin), "forward_pre", with_kwargs=True)
        for layer, side in dict.fromkeys((end.layer, end.side) for _, end in self._ends):
            module = names[layer]
            take = partial(self._take, layer, side)
            if side == "input":
                handles.add(module, BoundHook(module, take), "forward_pre", with_kwargs=True)
            else:
                handles.add(module, BoundHook(module, lambda _, output, take=take: take(output)), "forward")

    def _begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._teaching or is_backward():
            return
        self._forget()
        self._teaching = True
        try:
            self._targets = self._teach(*map_leaves((args, kwargs), Tensor, lambda _, tensor: snapshot(tensor)))
        finally:
            self._teaching = False

    def _teach(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
        layers = [end.layer for end, _ in self._ends]
        with preserved(self._teacher), record(self._teacher, layers, inputs=True) as rec:
            self.teacher_output = self._teacher(*args, **kwargs)
        return [_recorded(rec, end) for end, _ in self._ends]

    def _take(self, layer: str, side: str, *value: Any) -> None:
        if self._teaching or is_backward():
            return
        tensor = next((tensor for _, tensor in leaves(value, Tensor)), None)
        # A clone inside the graph: what follows may overwrite the tensor, and backward would then refuse it.
        self._live[layer, side].append(_Live(None if tensor is None else tensor.clone(), torch.is_grad_enabled()))

    def _forget(self) -> None:
        self._targets = []
        self._live.clear()


def _recorded(rec: Recording, end: Feature) -> Tensor:
    call = _pick(rec[end.layer], end)
    value = call.output if end.side == "output" else (call.input, call.kwargs)
    for _, tensor in leaves(value, Tensor):
        return tensor
    raise HookvizError(f"{end} of the teacher holds no tensor; choose another layer.")


def _pick(calls: Sequence[Any], end: Feature) -> Any:
    if end.call is None and len(calls) > 1:
        raise AmbiguousCallError(
            f"{end.layer!r} ran {len(calls)} times; say which with Feature({end.layer!r}, call=0)."
        )
    try:
        return calls[end.call or 0]
    except IndexError:
        raise HookvizError(f"{end} does not exist: {end.layer!r} ran {len(calls)} times.") from None
