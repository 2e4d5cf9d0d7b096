from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor, nn

from hookviz.models.checkpoints.heads import auxiliary_branches, head_names
from hookviz.models.checkpoints.report import Shape

# Buffers that no prediction in eval mode uses, or that a network's constructor computes from its settings alone.
_COUNTERS = frozenset({"num_batches_tracked", "n_averaged", "total_ops", "total_params"})
_CONSTANTS = frozenset({"relative_position_index", "relative_coords_table", "attn_mask", "position_ids"})


@dataclass(frozen=True)
class Differences:
    """What a network's own values and a file's differ in, and what of that may be."""

    own: Mapping[str, Tensor]
    values: Mapping[str, Tensor]
    left_over: Mapping[str, str | None]
    heads: tuple[str, ...]
    branches: tuple[str, ...]

    @classmethod
    def between(
        cls,
        module: nn.Module,
        own: Mapping[str, Tensor],
        values: Mapping[str, Tensor],
        left_over: Mapping[str, str | None],
    ) -> Differences:
        """Those between a module and values by its own names; ``left_over`` as in :class:`Naming`."""
        return cls(own, values, left_over, head_names(module), auxiliary_branches(module))

    @cached_property
    def wrong_shape(self) -> tuple[tuple[str, Shape, Shape], ...]:
        """The head's first, then in the network's order: name, expected shape, found shape."""
        pairs = ((name, tuple(self.own[name].shape), tuple(value.shape)) for name, value in self.values.items())
        wrong = [pair for pair in pairs if pair[1] != pair[2]]
        order = {name: place for place, name in enumerate(self.own)}
        return tuple(sorted(wrong, key=lambda pair: (not _inside(pair[0], [self.head]), order[pair[0]])))

    @cached_property
    def wrong_dtype(self) -> tuple[tuple[str, str, str], ...]:
        """Integers or complex numbers where the network computes with real ones: name, expected, found."""
        return tuple(
            (name, _dtype(self.own[name]), _dtype(value))
            for name, value in self.values.items()
            if value.is_complex() != self.own[name].is_complex()
            or (self.own[name].is_floating_point() and not value.is_floating_point() and not value.is_complex())
        )

    @cached_property
    def matched(self) -> tuple[str, ...]:
        """Names that are in both with the same shape and kind of number."""
        wrong = {name for name, *_ in (*self.wrong_shape, *self.wrong_dtype)}
        return tuple(name for name in self.own if name in self.values and name not in wrong)

    @property
    def missing(self) -> tuple[str, ...]:
        """The network's names that the file has nothing for."""
        return tuple(name for name in self.own if name not in self.values)

    @property
    def unexpected(self) -> tuple[str, ...]:
        """The file's keys that the network has no place for."""
        return tuple(self.left_over)

    @property
    def head(self) -> str:
        """The classification head's name, ``""`` where there is none (or where the network is nothing else)."""
        return self.heads[0] if self.heads else ""

    @property
    def num_classes(self) -> int | None:
        """How many classes the file's head has; None where it has none, or one that reads another width."""
        weight = _inner(self.head, "weight")
        if weight not in self.values or self.values[weight].shape[1:] != self.own[weight].shape[1:]:
            return None
        return int(self.values[weight].shape[0])

    @cached_property
    def random_layers(self) -> tuple[str, ...]:
        """The layers, and whole branches, that would stay at a random start."""
        layers = dict.fromkeys(
            next((branch for branch in self._absent if _inside(name, [branch])), name.rpartition(".")[0])
            for name in self.missing
            if isinstance(self.own[name], nn.Parameter) or name.rpartition(".")[2] in {"running_mean", "running_var"}
        )
        return tuple(layers)

    @property
    def fits(self) -> bool:
        """Whether nothing is wrong that a head of another size, or an absent one, does not explain."""
        parameters = [name for name in self.matched if isinstance(self.own[name], nn.Parameter)]
        return bool(parameters) and not (
            self.wrong_dtype
            or (self.wrong_shape and not self._only_heads_differ())
            or any(not self._may_be_missing(name) for name in self.missing)
            or any(not self._may_be_left(key, name) for key, name in self.left_over.items())
        )

    @cached_property
    def _absent(self) -> tuple[str, ...]:
        """The head and the auxiliary branches of which the file has nothing at all."""
        parts = [self.head] if self.heads else []
        return tuple(
            part for part in (*parts, *self.branches) if not any(_inside(name, [part]) for name in self.values)
        )

    def _only_heads_differ(self) -> bool:
        wrong = {name: (expected, found) for name, expected, found in self.wrong_shape}
        resized = [name for name in self.own if _inside(name, self.heads) and not _inside(name, self._absent)]
        sizes = {found[:1] for _, found in wrong.values()}
        return (
            set(wrong) == set(resized)
            and len(sizes) == 1
            and sizes != {(0,)}
            and all(expected[1:] == found[1:] for expected, found in wrong.values())
        )

    def _may_be_missing(self, name: str) -> bool:
        return name.rpartition(".")[2] in _COUNTERS | _CONSTANTS or _inside(name, self._absent)

    def _may_be_left(self, key: str, name: str | None) -> bool:
        if name is None or key.rpartition(".")[2] in _COUNTERS | _CONSTANTS:
            return True
        if name.lower().startswith("aux") and not self.branches:
            return True
        return self.head in self._absent and _inside(name, [self.head])


def _inside(name: str, layers: Iterable[str]) -> bool:
    return any(name.startswith(f"{layer}." if layer else "") for layer in layers)


def _inner(layer: str, name: str) -> str:
    return f"{layer}.{name}" if layer else name


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
