"""The hooks of one open recording."""

from __future__ import annotations

import sys
from collections import defaultdict
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor, nn

from hookviz.errors import GradientError
from hookviz.hooks.attach import Hook, HookHandles
from hookviz.hooks.failure import failed_layer, has_raised
from hookviz.hooks.frames import calls_under_way, is_inside_checkpoint, is_replay, outermost_call
from hookviz.hooks.gradient_capture import GradientCapture, InputEdges
from hookviz.hooks.lazy_copy import LazyCopies
from hookviz.hooks.names import LayerNames
from hookviz.hooks.output_hook import OutputHook, Returned
from hookviz.hooks.recording import Call, Recording
from hookviz.hooks.shared_hook import SharedHook
from hookviz.hooks.snapshot import Keep, Keeper
from hookviz.hooks.stopping import ForwardStopped, Stopper
from hookviz.hooks.structure import argument_infos, leaves, map_leaves, tensor_info, tensor_infos


class Wanted:
    """What one recording is to keep beyond outputs."""

    def __init__(self, inputs: bool, gradients: bool, stop: bool) -> None:  # mirrors record's keywords
        self.inputs = inputs
        self.gradients = gradients
        self.stop = stop

    @property
    def calls_beforehand(self) -> bool:
        """Whether chosen layers must be seen before they run, not only when they have returned."""
        return self.inputs or self.gradients or self.stop


class Recorder:
    """The hooks of one open recording, and what they need to know of the run they are in."""

    def __init__(  # noqa: PLR0913, PLR0917  # private: assembled in one place, in record
        self,
        names: LayerNames,
        chosen: list[str],
        wanted: Wanted,
        keep: Keep | None,
        recording: Recording,
        handles: HookHandles,
    ) -> None:
        self._names = names
        self._chosen = chosen
        self._wanted = wanted
        self._copies = LazyCopies(names.values())
        self._keeper = Keeper(keep, self._copies.copy)
        self._recording = recording
        self._run = recording.last
        self._handles = handles
        self._gradients = GradientCapture(handles, Keeper(keep))
        self._stopper = Stopper(names, chosen) if wanted.stop else None
        self.stopped: ForwardStopped | None = None
        is_plain = keep is None and not wanted.calls_beforehand
        self._outputs = OutputHook(names, self._copies, self._begin_further_in) if is_plain else None
        self._outermost: str | None = None
        self._ends_seen: set[str] = set()
        self._received: dict[str, list[_Received]] = defaultdict(list)

    def install(self) -> None:
        """Put the hooks on: brackets where a run may begin, captures where something is kept."""
        chosen = set(self._chosen)
        if self._outputs:
            self._handles.add_shared(self._names, self._chosen, self._outputs, "forward")
            self._ends_seen = {""} if len(chosen) == len(self._names) else {""} | self._bracketed - chosen
        else:
            self._add(chosen - self._bracketed, self._capture, "forward")
            self._add(chosen & self._bracketed, self._close, "forward", always_call=True)
            self._ends_seen = self._bracketed - chosen
        self._add(self._ends_seen, self._leave, "forward", always_call=True)
        # A run mostly begins with the root; where it does not, the first layer to return will find out.
        self._add(
            self._bracketed if self._wanted.calls_beforehand else {""}, self._enter, "forward_pre", with_kwargs=True
        )
        if self._wanted.inputs or self._wanted.gradients:
            self._add(chosen, self._receive, "forward_pre", with_kwargs=True)

    @cached_property
    def _bracketed(self) -> set[str]:
        """Where a run may begin: the layers that others are in, and those that are to be seen before they run."""
        return self._names.above(self._chosen) | {""} | set(self._chosen if self._wanted.calls_beforehand else ())

    def _add(self, layers: set[str], method: Hook, kind: Literal["forward", "forward_pre"], **options: bool) -> None:
        if layers:
            self._handles.add_shared(self._names, layers, SharedHook(self._names, method), kind, **options)

    def _enter(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Begin a run with the outermost call."""
        if not is_replay() and not self._is_inside_run(name):
            self._begin_run(name, args, kwargs)

    def _is_inside_run(self, name: str) -> bool:
        if self._outermost is None:
            return False
        if name and name != self._outermost:
            return True
        # Torch does not tell of a run that Ctrl-C ended.
        return calls_under_way(self._names[self._outermost]) > (name == self._outermost)

    def _begin_run(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._outermost = name
        self._run = self._recording.begin_run()
        self._received.clear()
        self._copies.begin((args, kwargs))
        if self._outputs:
            self._outputs.returned = self._run.returned
        if self._wanted.gradients:
            _check_gradients_can_flow(self._names[name], (args, kwargs))
        if self._stopper:
            self._stopper.begin(name, (args, kwargs))

    def _begin_further_in(self, name: str, args: tuple[Any, ...], output: Any) -> Returned:
        """Begin a run with a call that no hook announced; a layer in it has just returned."""
        call = outermost_call(set(map(id, self._names.modules(self._bracketed))))
        outermost = name if call is None else self._names.by_id[id(call["self"])]
        if call is not None and outermost != name:
            self._begin_run(outermost, call["args"], call["kwargs"])
            self._see_end_of(outermost)
        else:  # a chosen layer called by itself, with nothing around it that is watched
            self._run = self._recording.begin_run()
            self._copies.begin((args, output))
        return self._run.returned

    def _see_end_of(self, name: str) -> None:
        if self._outputs and name not in self._ends_seen:
            self._ends_seen.add(name)
            self._add({name}, self._leave, "forward", always_call=True)

    def _receive(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not is_replay():
            self._received[name].append(self._take(name, (args, kwargs)))

    def _take(self, name: str, arguments: Any) -> _Received:
        edges = self._gradients.before(arguments) if self._wanted.gradients else None
        kept = self._keeper.value(name, arguments) if self._wanted.inputs else None
        return _Received(kept, argument_infos(*arguments), edges)

    def _capture(self, name: str, args: tuple[Any, ...], output: Any) -> None:
        if is_replay():
            return
        if self._outermost is None:
            self._begin_further_in(name, args, output)
        infos = None if self._keeper.keeps_tensors else tensor_infos(output)
        call = self._run.new_call(name, self._keeper.value(name, output), infos)
        if self._received:
            self._complete(call, output)
        if self._stopper and self._stopper.is_done_after(name) and self._outermost != name:
            self.stopped = ForwardStopped()
            raise self.stopped

    def _complete(self, call: Call, output: Any) -> None:
        """Add to a call what it received, and where its gradients will arrive."""
        if not self._received[call.layer]:
            return
        received = self._received[call.layer].pop()
        call.input_info = received.info
        if self._wanted.inputs:
            call.receive(received.arguments)
        if received.edges is not None:
            self._gradients.after(call, output, map_leaves(output, Tensor, tensor_info), received.edges)

    def _close(self, name: str, args: tuple[Any, ...], output: Any) -> None:
        """Capture a call and end it; torch calls this also when the module raised."""
        try:
            if not has_raised(self._names[name]):
                self._capture(name, args, output)
        finally:
            self._leave(name, args, output)

    def _leave(self, name: str, _: Any, output: Any) -> None:
        """End the run with the outermost call; torch calls this also when the module raised."""
        if self._outermost not in {None, name} or is_replay():
            return
        module = self._names[name]
        if has_raised(module):
            self.note_failure(sys.exception())
        elif self._outermost is None or calls_under_way(module) > 1:
            return
        else:
            self._copies.end(output)
        self._outermost = None
        if self._outputs:
            self._outputs.returned = None

    def close(self) -> None:
        """Let go of the hook that holds this recorder, so that what was kept goes with the recording at once."""
        self._outputs = None

    def note_failure(self, error: BaseException | None) -> None:
        """Say in the recording which layer an error came from, if it came from one; once, wherever it passes."""
        failed = None if error is None else failed_layer(error, self._names)
        if error is None or failed is None or any(map(_is_own, getattr(error, "__notes__", ()))):
            return
        if self._outermost is None:  # a chosen layer called by itself
            self._run = self._recording.begin_run()
        self._run.failed = failed
        error.add_note(f"{_NOTE}{failed}")


_NOTE = "hookviz: "


def _is_own(note: str) -> bool:
    return note.startswith(_NOTE)


class _Received:
    """What a call was given, between its start and its return."""

    __slots__ = ("arguments", "edges", "info")

    def __init__(self, arguments: Any, info: Any, edges: InputEdges | None) -> None:
        self.arguments = arguments
        self.info = info
        self.edges = edges


def _check_gradients_can_flow(module: nn.Module, arguments: Any) -> None:
    if not torch.is_grad_enabled():
        if not is_inside_checkpoint():
            raise GradientError(
                "gradients=True needs autograd, and this forward runs without it: "
                "leave torch.no_grad() or inference_mode()."
            )
    elif not any(parameter.requires_grad for parameter in module.parameters()) and not any(
        tensor.requires_grad for _, tensor in leaves(arguments, Tensor)
    ):
        raise GradientError(
            "gradients=True has nothing to differentiate: every parameter is frozen and no input requires a gradient; "
            "call requires_grad_() on the input first."
        )
