"""Functional operations as layers: what ``+``, ``F.relu`` or ``torch.cat`` computed, which no hook sees."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode, _get_current_function_mode

from hookviz.hooks.attach import BoundHook, HookHandles, is_looking
from hookviz.hooks.compiled import run_eagerly
from hookviz.hooks.frames import is_backward
from hookviz.hooks.layers import layer_infos
from hookviz.hooks.layouts import layouts_by_shape
from hookviz.hooks.names import LayerNames
from hookviz.hooks.operation_names import OperationNames, is_leaf, operation_name, operation_names
from hookviz.hooks.preserve import random_state_kept
from hookviz.hooks.private_copy import private_copy
from hookviz.hooks.record import record
from hookviz.hooks.recording import Recording
from hookviz.hooks.snapshot import Keep, Keeper, snapshot
from hookviz.hooks.structure import each_tensor, leaves, tensor_infos
from hookviz.types import LayerInfo


@contextmanager
def record_operations(
    module: nn.Module, operations: str | Sequence[str] = "*", *, keep: Keep | None = None
) -> Iterator[Recording]:
    """Record what functional operations compute while the network runs inside the block.

    >>> with record_operations(model, "layer1.0.add") as rec:
    ...     model(image)
    >>> rec["layer1.0.add"].output

    An operation is named after the module it runs in, as torchvision's FX tracer names it where FX can trace the
    network (``layer1.0.add``, ``flatten``); one whose name is already a module's gets ``()`` behind it. Operations
    inside torch's own layers are part of those layers. Every output is copied at once, as ``record`` does. The network
    computes what it would without the recording, to the last bit (but see ``record`` on fused encoder layers).

    Args:
        module: the network.
        operations: names or globs (``*`` crosses dots). What there is, is known only when the network runs: a name that
            did not occur is in ``.not_called``.
        keep: applied to each tensor in place of a copy, as in ``record``.
    """
    patterns = [operations] if isinstance(operations, str) else list(operations)
    names = LayerNames(module)
    known: dict[str, str] = {name: name for name in patterns if not any(mark in name for mark in "*?[")}
    recording = Recording(list(known), known, type(names.root).__name__, keep_runs=False)
    if not patterns:
        yield recording
        return
    watcher = _OperationWatcher(names, patterns, known, Keeper(keep), recording)
    with run_eagerly(), HookHandles() as handles:
        watcher.install(handles)
        try:
            yield recording
        finally:
            watcher.close()


def list_operations(module: nn.Module, *args: Any, **kwargs: Any) -> list[LayerInfo]:
    """List the functional operations of one forward, in order; ``class_name`` is the operation's plain name.

    As ``list_layers``, it runs a private copy in eval mode and leaves everything as it was.
    """
    return _operation_infos(*_run(module, args, kwargs))


def list_all(module: nn.Module, *args: Any, **kwargs: Any) -> list[LayerInfo]:
    """List the layers and the functional operations of one forward, each operation behind the module it runs in.

    As ``list_layers``, it runs a private copy in eval mode and leaves everything as it was.
    """
    private, layers, operations = _run(module, args, kwargs)
    return _merged(layer_infos(module, layers), _operation_infos(private, layers, operations))


def _merged(layers: Sequence[LayerInfo], operations: Sequence[LayerInfo]) -> list[LayerInfo]:
    """Layers and functional operations in one list, each operation behind the module it runs in."""
    last = {path: place for place, info in enumerate(layers) for path in _around(info.name)}
    behind: dict[int, list[LayerInfo]] = defaultdict(list)
    for operation in sorted(operations, key=lambda info: -info.depth):  # what is further in comes first
        behind[last.get(_module(operation), len(layers) - 1)].append(operation)
    return [info for place, layer in enumerate(layers) for info in (layer, *behind[place])]


def _around(name: str) -> Iterator[str]:
    """A layer's name and those of the modules that contain it."""
    while name:
        yield name
        name = name.rpartition(".")[0]
    yield ""


def _module(operation: LayerInfo) -> str:
    return operation.name.rpartition(".")[0]


def _run(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[nn.Module, Recording, Recording]:
    """A private copy, and the shapes of what its layers and its functional operations return in one forward."""
    private = private_copy(module).eval()
    own_args, own_kwargs = each_tensor((args, kwargs), snapshot)
    with (
        random_state_kept(private),
        torch.no_grad(),
        record(private, keep=lambda _: None) as layers,
        record_operations(private, keep=lambda _: None) as operations,
    ):
        private(*own_args, **own_kwargs)
    return private, layers, operations


def _operation_infos(private: nn.Module, layers: Recording, operations: Recording) -> list[LayerInfo]:
    layout_of = layouts_by_shape(private, layers)
    return [
        LayerInfo(
            name=name,
            class_name=_plain(name),
            depth=name.count(".") + 1,
            parameters=0,
            calls=len(calls),
            outputs=tuple(call.output_info for call in calls),
            layouts=tuple(layout_of(call.output_info[0].shape) for call in calls),
            is_operation=True,
            other_layouts=tuple(tuple(layout_of(info.shape) for info in call.output_info[1:]) for call in calls),
        )
        for name, calls in operations.items()
    ]


def _plain(name: str) -> str:
    last = name.rpartition(".")[2].removesuffix("()")
    stem, _, number = last.rpartition("_")
    return stem if stem and number.isdigit() else last


class _OperationWatcher(TorchFunctionMode):
    """Sees every torch function called in a module of one network, between the start and the end of a run."""

    def __init__(
        self, names: LayerNames, patterns: Sequence[str], known: dict[str, str], keeper: Keeper, recording: Recording
    ) -> None:
        super().__init__()
        self._names = names
        self._patterns = patterns
        self._known = known
        self._keeper = keeper
        self._recording = recording
        self._running: list[str] = []
        self._leaves = 0
        self._active = False
        self._operation_names = OperationNames({}, ())
        self._buffers: set[int] = set()

    def install(self, handles: HookHandles) -> None:
        """Follow which module is running."""
        for name, module in self._names.items():
            enter, leave = partial(self._enter, name, module), partial(self._leave, name, module)
            handles.add(module, BoundHook(module, enter), "forward_pre", with_kwargs=True)
            handles.add(module, BoundHook(module, leave), "forward", always_call=True)

    def close(self) -> None:
        """Stop seeing functions, wherever the forward was left."""
        self._deactivate()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the function, and note what it returned."""
        output = func(*args, **(kwargs or {}))
        if self._running and not is_looking():
            self._note(func, (args, kwargs), output)
        return output

    def _enter(self, name: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if is_backward():
            return
        if not self._running:
            self._begin_run(module, args, kwargs)
        self._running.append(name)
        if is_leaf(module):
            self._leaves += 1
            self._deactivate()  # an active mode turns off the fused code of some layers

    def _leave(self, name: str, module: nn.Module, *_: Any) -> None:
        if is_backward() or name not in self._running:
            return
        while (last := self._running.pop()) != name:
            self._leaves -= is_leaf(self._names[last])
        self._leaves -= is_leaf(module)
        if self._running and not self._leaves:
            self._activate()
        elif not self._running:
            self._deactivate()

    def _begin_run(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._recording.begin_run()
        self._leaves = 0
        is_whole = module is self._names.root
        self._operation_names = operation_names(module, args, kwargs) if is_whole else OperationNames({}, ())
        self._buffers = {_memory(buffer) for buffer in module.buffers()}
        self._activate()

    def _activate(self) -> None:
        if not self._active:
            self.__enter__()  # type: ignore[no-untyped-call]  # torch leaves it untyped
            self._active = True

    def _deactivate(self) -> None:
        if self._active and _get_current_function_mode() is self:
            self.__exit__(None, None, None)
            self._active = False

    def _note(self, function: Any, arguments: Any, output: Any) -> None:
        infos = tensor_infos(output)
        if not infos:
            return
        path, operation = self._running[-1], operation_name(function)
        shapes = tuple(info.shape for info in infos)
        is_constant = self._operation_names.expects(path, operation) and self._is_on_buffers(arguments)
        name = self._operation_names.next_name(path, operation, shapes, is_constant=is_constant)
        if name in self._names:
            name = f"{name}()"
        if any(name == pattern or fnmatchcase(name, pattern) for pattern in self._patterns):
            self._known[name] = name
            kept = self._keeper.value(name, output)
            self._recording.last.new_call(name, kept, infos)

    def _is_on_buffers(self, arguments: Any) -> bool:
        tensors = [tensor for _, tensor in leaves(arguments, Tensor)]
        return bool(tensors) and all(_memory(tensor) in self._buffers for tensor in tensors)


def _memory(tensor: Tensor) -> int:
    """Which memory a tensor's values are in, shared with its views; 0 where that cannot be said."""
    return tensor.untyped_storage()._cdata if tensor.layout is torch.strided and not tensor.is_meta else 0
