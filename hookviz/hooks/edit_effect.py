"""What an edit does to a network's output, and to the layers behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from torch import Tensor, nn

from hookviz.hooks.as_found import own_arguments
from hookviz.hooks.attach import BoundHook, HookHandles
from hookviz.hooks.edit import edit
from hookviz.hooks.edits import Edit
from hookviz.hooks.moves import Move, move
from hookviz.hooks.names import LayerNames, Layers
from hookviz.hooks.private_run import Arguments, as_arguments, private_run
from hookviz.hooks.snapshot import snapshot
from hookviz.hooks.structure import each_tensor, leaves

Edits: TypeAlias = Mapping[str, Edit | Sequence[Edit]]
Tensors: TypeAlias = dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class LayerMove:
    """How far one tensor that a layer returned moved: in which call, at which path, and whether the layer is edited."""

    name: str
    call: int
    path: str
    edited: bool
    move: Move


@dataclass(frozen=True, slots=True, eq=False)
class EditEffect:
    """One run of a network as it is, and one with edits.

    ``before`` and ``after`` are what the network returned. ``moved`` has every tensor of the watched layers that came
    out otherwise, the farthest first and then in the order of the forward, edited layers and those around them
    included: first tensors of another shape, of one run only, or without an element that is finite in both; then those
    with new NaN or infinities; then by the relative distance.
    """

    before: Any
    after: Any
    moved: tuple[LayerMove, ...]


def compare_edits(
    module: nn.Module,
    args: tuple[Any, ...],
    edits: Edits,
    *,
    kwargs: Mapping[str, Any] | None = None,
    watch: Layers = "*",
) -> EditEffect:
    """Run a network as it is and once more with some layers edited, and see what changes.

    >>> effect = compare_edits(model, (image,), {"layer1.0.relu": Zero(channels=[3, 7]), "conv1": Scale(0.5)})
    >>> effect.before.softmax(1), effect.after.softmax(1)
    >>> [(one.name, one.move.relative) for one in effect.moved if not one.edited][:10]

    Private copies run, in eval mode and without gradients; the network, its hooks, the arguments and the random state
    stay as they are. Both runs start from the same state.

    Of the first run everything is held that the watched layers return from the first edited one on: what was before
    cannot have moved, and what comes later can only be compared when the second run has reached it, which frees it.
    Give ``watch`` where that is too much.

    Args:
        module: the network.
        args: what it is called with.
        edits: for each layer name or glob, an edit or several, as in ``edit``.
        kwargs: what it is called with.
        watch: the layers to compare: names, globs, types, or a list of them.

    Raises:
        UnknownLayerError: a name that matches no layer; before anything runs.
        HookvizError: something that is no edit, or an edit that does not fit the output.
    """
    names = LayerNames(module)
    watched = frozenset(names.resolve(watch))
    edited = frozenset(name for pattern in edits for name in names.resolve(pattern))
    arguments = as_arguments(args, kwargs)
    first = _Held(edited, watched)
    before = _output(module, arguments, first.hold, {})
    second = _Compared(edited, watched, first.tensors)
    after = _output(module, arguments, second.compare, edits)
    return EditEffect(before, after, tuple(sorted(second.finish(), key=lambda one: one.move.rank)))


Seen: TypeAlias = Callable[[str, int, Any], None]
"""What to do with a layer's output: its name, the number of the call, and what it returned."""


def _output(module: nn.Module, arguments: Arguments, seen: Seen, edits: Edits) -> Any:
    args, kwargs = own_arguments(arguments)
    with private_run(module) as private, edit(private, edits), HookHandles() as handles:
        calls: Counter[str] = Counter()

        def see(name: str, _: Any, output: Any) -> None:
            seen(name, calls[name], output)
            calls[name] += 1

        # On every layer, watched or not, and behind the edits': torch computes some layers otherwise where hooks sit,
        # which must be the same layers in both runs.
        for name, layer in LayerNames(private).items():
            handles.add(layer, BoundHook(layer, partial(see, name)), "forward")
        return each_tensor(private(*args, **kwargs), snapshot)


@dataclass
class _Held:
    """What the first run returned, from the first edited layer on."""

    edited: frozenset[str]
    watched: frozenset[str]
    tensors: dict[tuple[str, int], Tensors] = field(default_factory=dict)
    begun: bool = False

    def hold(self, name: str, call: int, output: Any) -> None:
        self.begun |= name in self.edited
        if self.begun and name in self.watched:
            self.tensors[name, call] = {path: snapshot(tensor) for path, tensor in leaves(output, Tensor)}


@dataclass
class _Compared:
    """The moves seen so far in the second run, and what of the first one still waits."""

    edited: frozenset[str]
    watched: frozenset[str]
    waiting: dict[tuple[str, int], Tensors]
    moves: list[LayerMove] = field(default_factory=list)
    begun: bool = False

    def compare(self, name: str, call: int, output: Any) -> None:
        self.begun |= name in self.edited
        if self.begun and name in self.watched:
            self._note(name, call, self.waiting.pop((name, call), {}), dict(leaves(output, Tensor)))

    def finish(self) -> Iterable[LayerMove]:
        """Every move, those of calls that the second run did not make included."""
        for (name, call), tensors in self.waiting.items():
            self._note(name, call, tensors, {})
        return self.moves

    def _note(self, name: str, call: int, before: Tensors, after: Tensors) -> None:
        for path in before | after:
            moved = move(before.get(path), after.get(path))
            if moved is not None:
                self.moves.append(LayerMove(name, call, path, name in self.edited, moved))
