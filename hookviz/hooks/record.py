"""Recording what the layers of a network take, return, and send back."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.errors import GradientError, HookvizError
from hookviz.hooks.attach import BoundHook, HookHandles
from hookviz.hooks.compiled import run_eagerly
from hookviz.hooks.gradient_capture import GradientCapture, InputEdges, is_backward
from hookviz.hooks.names import LayerNames, Layers
from hookviz.hooks.recording import FailedLayer, Recording
from hookviz.hooks.snapshot import Keep, Keeper
from hookviz.hooks.stopping import ForwardStopped, Stopper
from hookviz.hooks.structure import argument_infos, leaves, map_leaves, tensor_info


def record(  # noqa: PLR0913  # each is one thing a reader may want kept, and all have defaults
    module: nn.Module,
    layers: Layers = "*",
    *,
    inputs: bool = False,
    gradients: bool = False,
    stop: bool = False,
    keep: Keep | None = None,
    keep_runs: bool = False,
) -> AbstractContextManager[Recording]:
    """Record what layers compute while the network runs inside a ``with`` block.

    >>> with record(model, ["conv1", "layer1.*"]) as rec:
    ...     model(image)
    >>> rec["conv1"].output  # a tensor, as it was when conv1 returned
    >>> rec["layer1.0.relu"][1].output  # the second call of a layer that runs twice

    Every tensor is copied when its module returns, so that nothing later can write into it. The network computes
    exactly what it would without the recording, and carries no trace of it afterwards, whatever happened in the block.
    Only calls made by the thread that opened the block are recorded. Recomputation during a backward pass (checkpoints)
    is not recorded again. One exception: torch runs ``nn.TransformerEncoderLayer`` fused in eval mode and step by step
    where hooks sit on it, which differs by at most 1e-5.

    Args:
        module: the network. A compiled one runs eagerly inside the block, and its layers go by their eager names.
        layers: names as in ``named_modules()`` (the root is ``""``), globs (``*`` crosses dots), module types, modules,
            or a list of them.
        inputs: keep ``.input`` and ``.kwargs`` too, as they were when the module was called.
        gradients: keep ``.grad_output`` and ``.grad_input`` of a backward pass run inside the block. A re-entrant
            checkpoint has none for the layers inside it (``.gradient_note`` says so).
        stop: end the forward once no chosen layer can run again. The forward is left by an exception that the ``with``
            statement swallows: what follows the model's call inside the block does not run, and execution goes on after
            the block.
        keep: applied to each tensor when it is recorded, in place of a copy; for instance ``summarize``, so that large
            tensors need not be held.
        keep_runs: keep every run in ``.runs``, not the last one only.

    Returns:
        A context manager that gives a ``Recording``. It fills while the block runs and stays readable afterwards.

    Raises:
        UnknownLayerError: a name, glob or type that matches nothing; before anything runs.
        GradientError: gradients asked for where no forward could give any; when the forward starts.
        KeepError: ``keep`` failed.
        HookvizError: ``stop`` together with ``gradients``, or a module torch allows no hooks on.
    """
    if stop and gradients:
        raise HookvizError(
            "stop=True ends the forward early, so there is no backward to take gradients from; choose one."
        )
    names = LayerNames(module)
    chosen = names.resolve(layers)
    return _recorded(names, chosen, _Wanted(inputs, gradients, stop), keep, keep_runs=keep_runs)


class _Wanted:
    """What one recording is to keep beyond outputs."""

    def __init__(self, inputs: bool, gradients: bool, stop: bool) -> None:  # mirrors record's keywords
        self.inputs = inputs
        self.gradients = gradients
        self.stop = stop

    @property
    def calls_beforehand(self) -> bool:
        """Whether chosen layers must be seen before they run, not only when they have returned."""
        return self.inputs or self.gradients or self.stop


@contextmanager
def _recorded(
    names: LayerNames, chosen: list[str], wanted: _Wanted, keep: Keep | None, *, keep_runs: bool
) -> Iterator[Recording]:
    recording = Recording(chosen, names.aliases, type(names.root).__name__, keep_runs=keep_runs)
    with run_eagerly(), HookHandles() as handles:
        recorder = _Recorder(names, chosen, wanted, Keeper(keep), recording, handles)
        recorder.install()
        try:
            yield recording
        except ForwardStopped as stopped:
            if stopped is not recorder.stopped:
                raise
            recorder.stopped = stopped.__traceback__ = None  # a traceback would hold the frames, and they the tensors
        except BaseException as error:
            recorder.note_failure(error)
            raise


class _Recorder:
    """The hooks of one open recording, and what they need to know of the run they are in."""

    def __init__(  # noqa: PLR0913, PLR0917  # private: assembled in one place just above
        self,
        names: LayerNames,
        chosen: list[str],
        wanted: _Wanted,
        keeper: Keeper,
        recording: Recording,
        handles: HookHandles,
    ) -> None:
        self._names = names
        self._chosen = chosen
        self._wanted = wanted
        self._keeper = keeper
        self._recording = recording
        self._handles = handles
        self._gradients = GradientCapture(handles, keeper)
        self._stopper = Stopper(names, chosen) if wanted.stop else None
        self.stopped: ForwardStopped | None = None
        self._running: list[str] = []
        self._handled: BaseException | None = None
        self._received: dict[str, list[_Received]] = defaultdict(list)

    def install(self) -> None:
        """Put every hook on: brackets where a run may begin, captures where something is kept."""
        chosen = set(self._chosen)
        bracketed = self._names.above(chosen) | {""} | (chosen if self._wanted.calls_beforehand else set())
        for name, module in self._names.items():
            if name in bracketed:
                self._add(module, self._enter, name, "forward_pre", with_kwargs=True)
            if name in chosen:
                if self._wanted.inputs or self._wanted.gradients:
                    self._add(module, self._receive, name, "forward_pre", with_kwargs=True)
                self._add(module, self._capture, name, "forward")
            if name in bracketed:
                self._add(module, self._leave, name, "forward", always_call=True)

    def _add(self, module: nn.Module, method: Any, name: str, kind: Any, **options: bool) -> None:
        self._handles.add(module, BoundHook(module, partial(method, name)), kind, **options)

    def _enter(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if _is_replay():
            return
        if not self._running:
            self._begin_run(name, args, kwargs)
        self._running.append(name)

    def _begin_run(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._recording.begin_run()
        self._received.clear()
        self._handled = sys.exception()
        if self._wanted.gradients:
            _check_gradients_can_flow(self._names[name], (args, kwargs))
        if self._stopper:
            self._stopper.begin(name, (args, kwargs))

    def _receive(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not _is_replay():
            self._received[name].append(self._take(name, (args, kwargs)))

    def _take(self, name: str, arguments: Any) -> _Received:
        edges = self._gradients.before(arguments) if self._wanted.gradients else None
        kept = self._keeper.value(name, arguments) if self._wanted.inputs else None
        return _Received(kept, argument_infos(*arguments), edges)

    def _capture(self, name: str, _: tuple[Any, ...], output: Any) -> None:
        if _is_replay():
            return
        if not self._running:  # a chosen layer called by itself, with nothing around it that is watched
            self._recording.begin_run()
        structure = map_leaves(output, Tensor, tensor_info)
        call = self._recording.last.new_call(name, self._keeper.value(name, output), structure)
        if self._received[name]:
            received = self._received[name].pop()
            call.input_info = received.info
            if self._wanted.inputs:
                call.receive(received.arguments)
            if received.edges is not None:
                self._gradients.after(call, output, structure, received.edges)
        if self._stopper and self._stopper.is_done_after(name) and self._running[:1] != [name]:
            self.stopped = ForwardStopped()
            raise self.stopped

    def _leave(self, name: str, *_: Any) -> None:
        """Close the call; torch calls this also when the module raised."""
        if _is_replay() or name not in self._running:
            return
        error = sys.exception()
        if self._running[0] == name and error is not None and error is not self._handled:
            self.note_failure(error)
        while self._running.pop() != name:
            pass

    def note_failure(self, error: BaseException) -> None:
        """Say in the recording which layer an error came from, if it came from one."""
        failed = _failed_layer(error, self._names)
        if failed is None or self._recording.failed is not None:
            return
        if not self._running:  # a chosen layer called by itself
            self._recording.begin_run()
        self._recording.last.failed = failed
        error.add_note(f"hookviz: {failed}")


class _Received:
    """What a call was given, between its start and its return."""

    __slots__ = ("arguments", "edges", "info")

    def __init__(self, arguments: Any, info: Any, edges: InputEdges | None) -> None:
        self.arguments = arguments
        self.info = info
        self.edges = edges


def _is_replay() -> bool:
    """Whether the module is being run for another purpose than its result: traced, or recomputed by a checkpoint."""
    return torch._C._get_tracing_state() is not None or is_backward()


def _check_gradients_can_flow(module: nn.Module, arguments: Any) -> None:
    if not torch.is_grad_enabled():
        if not _is_inside_checkpoint():
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


def _is_inside_checkpoint() -> bool:
    """A re-entrant checkpoint runs its first forward without gradients, and that is as it should be."""
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_globals.get("__name__") == "torch.utils.checkpoint":
            return True
    return False


def _failed_layer(error: BaseException, names: LayerNames) -> FailedLayer | None:
    """Find the innermost layer among the frames an error passed through."""
    layers = {id(module): name for name, module in names.items()}
    calls = [
        frame.f_locals
        for frame in _frames(error.__traceback__)
        if frame.f_code is nn.Module._call_impl.__code__ and id(frame.f_locals.get("self")) in layers
    ]
    if not calls:
        return None
    innermost = calls[-1]
    module = innermost["self"]
    given = argument_infos(innermost["args"], innermost["kwargs"])
    return FailedLayer(layers[id(module)], type(module).__name__, given, f"{type(error).__name__}: {error}")


def _frames(traceback: TracebackType | None) -> Iterator[Any]:
    while traceback is not None:
        yield traceback.tb_frame
        traceback = traceback.tb_next
