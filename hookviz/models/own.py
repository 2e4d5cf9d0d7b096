"""A person's own networks: found by ``package.module:factory``, described by what the factory returns."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

from PIL import Image
from torch import nn

from hookviz.errors import ModelError
from hookviz.models.architecture import TrainedWeights
from hookviz.models.initialization import seeded_initialization
from hookviz.models.own_recipe import OwnRecipe

AS_BUILT = "as built"
"""The name of the weights that a factory gives its network."""

GROUP = "hookviz.models"
"""Installed packages offer networks as entry points of this group."""

ENVIRONMENT = "HOOKVIZ_MODEL"
"""Targets separated by commas, offered in every process that has the variable."""

_offered: dict[str, str] = {}


@dataclass(frozen=True)
class Network:
    """What a factory may return in place of a bare module, to say more about it.

    ``prepare`` makes the network's input of an upright RGB picture: a tensor (C, H, W), or with a batch axis
    (1, C, H, W); torchvision's and timm's transforms do. ``class_names`` has one name for each class. ``example`` is
    what the module is called with: a tensor, or a tuple of all its arguments (a list or a dictionary is one argument).
    The picture takes the place of its first tensor with height and width, and where nothing else says so, its size.
    """

    module: nn.Module
    prepare: Callable[[Image.Image], Any] | None = None
    class_names: Sequence[str] = ()
    example: Any = None


def offer(targets: Iterable[str]) -> list[str]:
    """Put networks into the catalogue for this process, and give the names they are known by.

    Args:
        targets: each ``package.module:factory``, ``path/to/file.py:factory``, or either with ``name=`` in front.

    Raises:
        ModelError: one that is neither; nothing is imported yet.
    """
    pairs = [_named(target) for target in targets]
    _offered.update(pairs)
    return [name for name, _ in pairs]


def asked_for() -> tuple[str, ...]:
    """The names of what was offered in this process or by the environment."""
    return tuple(_asked_for())


def names() -> tuple[str, ...]:
    """All names: those asked for, and those that installed packages offer."""
    return tuple(_targets())


def is_target(name: str) -> bool:
    """Whether a name is itself where a network is to be found."""
    return ":" in name


def build(name: str) -> TrainedWeights:
    """Call the factory, and describe what it gave.

    Raises:
        ModelError: it cannot be imported, fails, or gives no module; one sentence says which.
    """
    target = _targets().get(name, name)
    network = _network(target)
    return TrainedWeights(
        recipe=OwnRecipe.of(network.module, network.prepare, network.example),
        categories=tuple(network.class_names),
        name=AS_BUILT,
        source=f"your own network, {target}",
        build=lambda _: network.module,
    )


def _targets() -> dict[str, str]:
    return _installed() | _asked_for()


def _asked_for() -> dict[str, str]:
    from_environment = filter(None, map(str.strip, os.environ.get(ENVIRONMENT, "").split(",")))
    return dict(map(_named, from_environment)) | _offered


@cache
def _installed() -> dict[str, str]:
    return {one.name: one.value for one in entry_points(group=GROUP)}


def _named(target: str) -> tuple[str, str]:
    name, given, rest = target.partition("=")
    name, target = (name, rest) if given else (target, target)
    location, colon, attribute = target.rpartition(":")
    if not (name and location and colon and attribute):
        raise ModelError(f"{target!r} names no network; write package.module:factory, or path/to/file.py:factory.")
    return name, target


def _network(target: str) -> Network:
    factory = _factory(target)
    if isinstance(factory, (nn.Module, Network)):
        made: Any = copy.deepcopy(factory)  # whoever else uses it keeps its mode and its device
    else:
        try:
            with seeded_initialization():  # the same values in every process, where the factory loads none
                made = factory()
        except Exception as error:  # it is somebody else's code
            raise ModelError(f"{target} failed with {_in_words(error)}; the traceback names the line.") from error
    network = made if isinstance(made, Network) else Network(made)
    if not isinstance(network.module, nn.Module):
        raise ModelError(
            f"{target} gives {_article(type(network.module).__name__)}; "
            "let it return an nn.Module, or a hookviz.Network that holds one."
        )
    return network


def _factory(target: str) -> Any:
    _, target = _named(target)
    factory = named_object(target, role="a function of it that returns the network")
    if not callable(factory) and not isinstance(factory, Network):
        raise ModelError(f"{target} is {_article(type(factory).__name__)}; name a function that returns the network.")
    return factory


def named_object(target: str, *, role: str) -> Any:
    """What ``package.module:name`` or ``path/to/file.py:name`` names; ``role`` says what it should be.

    Raises:
        ModelError: it cannot be imported, or is not there.
    """
    location, _, attribute = target.rpartition(":")
    try:
        module = _module_of_file(Path(location)) if location.endswith(".py") else _module(location)
    except Exception as error:  # whatever a module does when it is imported
        raise ModelError(
            f"{location} cannot be imported ({_in_words(error)}); "
            "start hookviz in the folder that holds it, or install it."
        ) from error
    try:
        return attrgetter(attribute)(module)
    except AttributeError as error:
        raise ModelError(f"{location} has no {attribute}; name {role}.") from error


def _module(location: str) -> ModuleType:
    # Behind all that is installed: a console script, unlike python -m, does not look into the current folder.
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    return importlib.import_module(location)


@cache
def _module_of_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    name = f"hookviz_own_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look their classes up there
    spec.loader.exec_module(module)
    return module


def _in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".replace("\n", " ").rstrip(".")


def _article(kind: str) -> str:
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"
