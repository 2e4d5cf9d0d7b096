"""FX's tracing kept to one network, since others run theirs in this process meanwhile."""

from __future__ import annotations

import math
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torchvision.ops
from torch import fx, nn
from torch.fx._symbolic_trace import (
    _autowrap_check,
    _constant_attribute_types,
    _is_fx_tracing_context,
    _patch_wrapped_functions,
    _Patcher,
)
from torch.fx.proxy import Proxy
from torchvision.models.feature_extraction import NodePathTracer

_patching = threading.RLock()


class PrivateTracer(NodePathTracer):  # type: ignore[misc]  # torchvision ships no types
    """Traces a network that nobody else holds; other modules of the process do not notice.

    ``fx.Tracer.trace`` replaces ``nn.Module.__call__`` while it runs. Forwards of other threads fail on it, and two
    traces that overlap put each other's replacement back for good. Here each module of the network gets a class of its
    own for the time of the trace. Functions that FX takes as one step are still replaced where they are defined, by
    ones that do as before for everything that is not traced; one thread at a time, so that all of them go again.
    """

    def __init__(self) -> None:
        super().__init__(autowrap_modules=(math, torchvision.ops))

    def trace(self, root: nn.Module, concrete_args: dict[str, Any] | None = None) -> fx.Graph:
        """Write down what the network's forward does, as ``fx.Tracer.trace`` would.

        Raises:
            Exception: FX cannot trace the network, which it says in many ways.
        """
        self.root = root
        self.root_module_name = root._get_name()
        self.submodule_paths = {module: name for name, module in root.named_modules()}
        self.graph = fx.Graph(tracer_cls=type(self))
        self.tensor_attrs = {
            value: f"{path}.{name}".lstrip(".")
            for module, path in self.submodule_paths.items()
            for name, value in module.__dict__.items()
            if isinstance(value, _constant_attribute_types)
        }
        forward = type(root).forward
        function, arguments = self.create_args_for_root(forward, is_module=True, concrete_args=concrete_args)
        with _is_fx_tracing_context(True), _patching, _Patcher() as patcher, self._modules_call_in(patcher):
            _patch_wrapped_functions(patcher)
            for scope in (forward.__globals__, *(module.__dict__ for module in self._autowrap_search)):
                _autowrap_check(patcher, scope, self._autowrap_function_ids)
            self.create_node("output", "output", (self.create_arg(function(*arguments)),), {})
        return self.graph

    @contextmanager
    def _modules_call_in(self, patcher: _Patcher) -> Iterator[None]:
        """Let this network's modules, and no others, ask the tracer what a call or a parameter is."""
        tracer, proxies = self, dict[str, Proxy]()

        class Traced(nn.Module):
            def __init_subclass__(cls) -> None:
                """Keep these classes out of registries that a network's own classes may have."""

            def __call__(self, *args: Any, **kwargs: Any) -> Any:
                scope = getattr(self.forward, "__globals__", {})
                _autowrap_check(patcher, scope, tracer._autowrap_function_ids)
                return tracer.call_module(self, super().__call__, args, kwargs)

            def __getattr__(self, name: str) -> Any:
                return tracer.getattr(name, super().__getattr__(name), proxies)

        originals = {module: type(module) for module in self.root.modules()}
        traced = {
            cls: types.new_class(cls.__name__, (Traced, cls), exec_body=partial(_name_after, cls))
            for cls in set(originals.values())
        }
        try:
            for module, cls in originals.items():
                _become(module, traced[cls])
            yield
        finally:
            for module, cls in originals.items():
                _become(module, cls)


def _become(module: nn.Module, cls: type[nn.Module]) -> None:
    object.__setattr__(module, "__class__", cls)  # a network may have a __setattr__ of its own


def _name_after(cls: type, body: dict[str, Any]) -> None:
    body.update(__module__=cls.__module__, __qualname__=cls.__qualname__)
