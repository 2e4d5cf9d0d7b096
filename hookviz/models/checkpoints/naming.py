"""From the names in a file to the network's own: what was put around and in front of them is taken off."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from hookviz.models.checkpoints.states import StoredState, is_averaged

# What DataParallel, torch.compile, FSDP and activation checkpointing put into names, at the front or in the middle.
_WRAPPERS = frozenset({"module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"})

# Names in torchvision's own files that its loaders translate: DenseNet before 0.3, the vision transformer before 0.13.
_OLD_NAMES = (
    (re.compile(r"(denselayer\d+\.(?:norm|conv))\.([12])\."), r"\1\2."),
    (re.compile(r"\bmlp\.linear_1\."), "mlp.0."),
    (re.compile(r"\bmlp\.linear_2\."), "mlp.3."),
)


@dataclass(frozen=True)
class Naming:
    """One way to read a file: which state dict, and for each name of the network the file's key.

    ``removed`` is what was taken off; ``left_over`` maps each key without a place to its name without the prefix, or to
    None where it lies outside the prefix.
    """

    state: StoredState
    keys: dict[str, str]
    removed: tuple[str, ...]
    left_over: dict[str, str | None]


def best_naming(states: Sequence[StoredState], own: Mapping[str, Tensor]) -> Naming:
    """The state dict and prefix with which most names and shapes are the network's; the first of those alike."""
    names = _OwnNames(own)
    state, prefix = max(
        ((state, prefix, count) for state in states for prefix, count in names.votes(state).items()),
        key=lambda choice: (choice[2], not any(map(is_averaged, choice[1].split(".")))),
    )[:2]
    return names.apply(state, prefix)


class _OwnNames:
    """The network's names, found again in longer ones."""

    def __init__(self, own: Mapping[str, Tensor]) -> None:
        self.own = own
        self.by_plain = {_plain(name): name for name in own}
        if len(self.by_plain) < len(own):
            self.by_plain = {name: name for name in own}

    def votes(self, state: StoredState) -> Counter[str]:
        """For each prefix, how many tensors under it have a name and shape of the network."""
        counts = Counter({"": 0})
        counts.update(
            prefix
            for key, value in state.values.items()
            for prefix, name in self._readings(key)
            if value.shape == self.own[name].shape
        )
        return counts

    def apply(self, state: StoredState, prefix: str) -> Naming:
        keys: dict[str, str] = {}
        for wanted in dict.fromkeys((prefix, "")):
            for key, value in state.values.items():
                name = dict(self._readings(key)).get(wanted)
                # Beside a prefix, only what surely belongs: a head next to its backbone.
                if name is None or name in keys or (wanted != prefix and value.shape != self.own[name].shape):
                    continue
                keys[name] = key
        placed = set(keys.values())
        left_over = {key: _under(_plain(key), prefix) for key in state.values if key not in placed}
        return Naming(state, keys, self._removed(state, keys, prefix), left_over)

    def _readings(self, key: str) -> Iterator[tuple[str, str]]:
        """Every way to split a key into a prefix and a name of the network."""
        parts = _plain(key).split(".")
        for start in range(len(parts)):
            rest = ".".join(parts[start:])
            name = self.by_plain.get(rest) or self.by_plain.get(_translated(rest))
            if name is not None:
                yield ".".join(parts[:start]), name

    def _removed(self, state: StoredState, keys: Mapping[str, str], prefix: str) -> tuple[str, ...]:
        in_file = dict.fromkeys(part for key in keys.values() for part in key.split(".") if part in _WRAPPERS)
        in_network = {part for name in keys for part in name.split(".")}
        wrappers = [f"{part}." for part in in_file if part not in in_network]
        return (*state.path, *wrappers, *([f"{prefix}."] if prefix else []))


def _plain(name: str) -> str:
    return ".".join(part for part in name.split(".") if part not in _WRAPPERS)


def _translated(name: str) -> str:
    for old, new in _OLD_NAMES:
        name = old.sub(new, name)
    return name


def _under(name: str, prefix: str) -> str | None:
    if not prefix:
        return name
    return name.removeprefix(f"{prefix}.") if name.startswith(f"{prefix}.") else None
