"""Layer names: what ``named_modules()`` calls a module, without the wrappers that compiling or parallelising adds."""

from __future__ import annotations

import difflib
import re
from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from fnmatch import translate
from typing import Any, TypeAlias

import torch
from torch import nn

from hookviz.errors import HookvizError, UnknownLayerError

Layers: TypeAlias = "str | type[nn.Module] | nn.Module | Iterable[str | type[nn.Module] | nn.Module]"

_COMPILED = "_orig_mod"
_WRAPPED = "module"
_PARALLEL = (nn.DataParallel, nn.parallel.DistributedDataParallel)


def eager(module: nn.Module) -> nn.Module:
    """Give the network without the wrapper of ``torch.compile``, ``DataParallel`` or ``DistributedDataParallel``.

    Raises:
        HookvizError: ``module`` is a TorchScript module, which has no eager original to look at, or runs on several
            GPUs.
    """
    return _unwrapped(module)[0]


def _unwrapped(module: nn.Module) -> tuple[nn.Module, str]:
    """The network inside, and what the wrappers put in front of the names of its layers."""
    path: list[str] = []
    while True:
        if isinstance(module, torch.jit.ScriptModule):
            raise HookvizError(
                "a TorchScript module has no Python layers to look at; pass the nn.Module it was made from."
            )
        if isinstance(module, nn.DataParallel) and len(module.device_ids) > 1:
            raise HookvizError(
                "DataParallel runs copies of the network on several GPUs; pass its `.module` and run that."
            )
        if isinstance(module, _PARALLEL):
            path.append(_WRAPPED)
        elif _COMPILED in module._modules:
            path.append(_COMPILED)
        else:
            return module, ".".join(path)
        module = module.get_submodule(path[-1])


class LayerNames(Mapping[str, nn.Module]):
    """The layers of a network by name, in the order of ``named_modules()``; the root is ``""``.

    A module reachable under several names is listed under the first one, and every other one leads to it. So do the
    names that a wrapper adds to or, as one more module above the network, changes: ``module.conv1``, ``conv1``.
    """

    def __init__(self, module: nn.Module) -> None:
        self.root, prefix = _unwrapped(module)
        self._modules = _named(self.root)
        self._canonical = {name: name for name in self._modules}
        self.by_id: Mapping[int, str] = {id(layer): name for name, layer in self._modules.items()}
        """The layers' names by the ids of their modules."""
        if len(self.by_id) < len(self._modules):
            self._list_each_once()
        is_wrapper = list(self.root._modules) == [_WRAPPED]
        for name, canonical in list(self._canonical.items()) if prefix or is_wrapper else ():
            if prefix:
                self._canonical.setdefault(f"{prefix}.{name}" if name else prefix, canonical)
            if is_wrapper and name.startswith(f"{_WRAPPED}."):
                self._canonical.setdefault(name.removeprefix(f"{_WRAPPED}."), canonical)

    def _list_each_once(self) -> None:
        first: dict[int, str] = {}
        self._canonical = {name: first.setdefault(id(layer), name) for name, layer in self._modules.items()}
        self._modules = {name: self._modules[name] for name in first.values()}
        self.by_id = first

    def __getitem__(self, name: str) -> nn.Module:
        return self._modules[self.canonical(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __contains__(self, name: object) -> bool:
        return name in self._canonical

    def items(self) -> ItemsView[str, nn.Module]:
        """The layers with their names; faster than what every mapping has."""
        return self._modules.items()

    def values(self) -> ValuesView[nn.Module]:
        """The layers."""
        return self._modules.values()

    def modules(self, layers: Iterable[str]) -> list[nn.Module]:
        """The modules listed under these names."""
        return [self._modules[name] for name in layers]

    @property
    def aliases(self) -> Mapping[str, str]:
        """Every name of every layer, with the name it is listed under."""
        return self._canonical

    def above(self, layers: Iterable[str]) -> set[str]:
        """The layers that contain one of these, by any of its names."""
        wanted = set(layers)
        above: set[str] = set()
        level = {alias for alias, name in self._canonical.items() if name in wanted}
        while level := {path.rpartition(".")[0] for path in level if path} - above:
            above |= level
        return {self._canonical[name] for name in above if name in self._canonical}

    def canonical(self, name: str) -> str:
        """Give the name a layer is listed under, for any of its names.

        Raises:
            UnknownLayerError: no layer has that name; the message has close matches.
        """
        if name in self._canonical:
            return self._canonical[name]
        raise unknown_layer(name, self._canonical, type(self.root).__name__)

    def resolve(self, layers: Layers) -> list[str]:
        """Give the names that names, globs, types, modules, or a list of them stand for, each once, in listed order.

        Raises:
            UnknownLayerError: one of them matches nothing.
        """
        many: list[Any]
        if isinstance(layers, (str, type, nn.Module)) or not isinstance(layers, Iterable):
            many = [layers]
        else:
            many = list(layers)
        chosen = {name for one in many for name in self._resolve_one(one)}
        return [name for name in self._modules if name in chosen]

    def _resolve_one(self, layer: Any) -> list[str]:
        if isinstance(layer, str):
            return self._resolve_name(layer)
        if isinstance(layer, nn.Module):
            wanted = eager(layer)
            found = [name for name, module in self._modules.items() if module is wanted]
        elif isinstance(layer, type):
            found = [name for name, module in self._modules.items() if isinstance(module, layer)]
        else:
            raise UnknownLayerError(f"a layer is chosen by name, glob, module or type, not by {layer!r}.")
        if not found:
            shown = layer.__name__ if isinstance(layer, type) else f"this {type(layer).__name__}"
            raise UnknownLayerError(
                f"no layer of {type(self.root).__name__} is {shown}; list_layers() shows what there is."
            )
        return found

    def _resolve_name(self, name: str) -> list[str]:
        """As it is, or without what a wrapper put in front of it when it was written down."""
        if name == "*":
            return list(self._modules)
        for spelled in (name, _bare(name)):
            if spelled in self._canonical:
                return [self._canonical[spelled]]
            matches = re.compile(translate(spelled)).match
            found = [canonical for known, canonical in self._canonical.items() if matches(known)]
            if found:
                return found
        if not any(mark in name for mark in "*?["):
            raise unknown_layer(name, self._canonical, type(self.root).__name__)
        raise UnknownLayerError(
            f"no layer of {type(self.root).__name__} matches {name!r}; list_layers() shows the names there are."
        )


def _bare(name: str) -> str:
    """``0`` for ``module.0`` and ``_orig_mod.0``."""
    parts = name.split(".")
    while len(parts) > 1 and parts[0] in {_WRAPPED, _COMPILED}:
        parts = parts[1:]
    return ".".join(parts)


def unknown_layer(name: str, known: Iterable[str], where: str) -> UnknownLayerError:
    """Make the error for a name that is not there, with the closest names that are."""
    close = difflib.get_close_matches(name, list(known), n=3)
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "list_layers() shows the names there are."
    return UnknownLayerError(f"no layer {name!r} in {where}; {hint}")


def _named(root: nn.Module) -> dict[str, nn.Module]:
    """Every name of every module, wrappers of ``torch.compile`` folded away where that leaves names distinct."""
    found = {"": root}
    _add_paths(root, "", found)
    if _COMPILED not in " ".join(found):
        return found
    found = {
        name: module
        for name, module in found.items()
        if not (_COMPILED in module._modules and type(module).__name__ == "OptimizedModule")
    }
    named: dict[str, nn.Module] = {}
    for name, module in found.items():
        folded = ".".join(part for part in name.split(".") if part != _COMPILED)
        named.setdefault(folded if folded == name or folded not in found else name, module)
    return named


def _add_paths(module: nn.Module, prefix: str, found: dict[str, nn.Module]) -> None:
    """What ``named_modules(remove_duplicate=False)`` gives below a module, in a fraction of its time."""
    for key, child in module._modules.items():
        if child is not None:
            found[prefix + key] = child
            if child._modules:
                _add_paths(child, f"{prefix}{key}.", found)
