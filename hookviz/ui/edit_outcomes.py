"""What edits do to a network's answer, kept for all sessions within a bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st
from torch import Tensor
from torch.utils import _pytree as pytree

from hookviz.hooks.class_scores import class_scores
from hookviz.hooks.edit_effect import LayerMove, compare_edits
from hookviz.hooks.estimate import Estimate
from hookviz.hooks.structure import leaves
from hookviz.models import Model
from hookviz.ui.shelf import Shelf
from hookviz.ui.switches import Switch, edits_of

BYTES_KEPT = 64 * 2**20
BYTES_COMPARED = 1024 * 2**20
"""What all layers of a run may take that is compared with another; above, only some are watched."""

_MOVED_KEPT = 64


@dataclass(frozen=True, slots=True, eq=False)
class EditOutcome:
    """What a network returned as it is and with edits, on the CPU, and the later layers that moved, the farthest first.

    ``watched`` says whether all layers were compared.
    """

    before: Any
    after: Any
    moved: tuple[LayerMove, ...]
    watched: bool

    @property
    def scores(self) -> tuple[Tensor, Tensor] | None:
        """The logits before and after; None where the network gives none."""
        before, after = class_scores(self.before), class_scores(self.after)
        return None if before is None or after is None else (before, after)

    @property
    def bytes(self) -> int:
        """The memory that both outputs take."""
        tensors = [one for _, one in leaves((self.before, self.after), Tensor)]
        return sum(one.numel() * one.element_size() for one in tensors)


@st.cache_resource(show_spinner=False)
def outcomes() -> Shelf[EditOutcome]:
    """Outcomes in memory: at most ``BYTES_KEPT``, shared by all sessions."""
    return Shelf(BYTES_KEPT, lambda outcome: outcome.bytes + 4096)


def get_outcome(
    key: tuple[str, str], model: Model, batch: Tensor, switches: Sequence[Switch], estimated: Estimate
) -> EditOutcome:
    """Run the network as it is and edited, once for all sessions.

    Raises:
        HookvizError: an edit that does not fit its layer's output.
    """
    return outcomes().get((key, frozenset(switches)), lambda: _run(model, batch, switches, estimated))


def _run(model: Model, batch: Tensor, switches: Sequence[Switch], estimated: Estimate) -> EditOutcome:
    every = [name for name, _ in model.module.named_modules()]
    watched = watched_layers(every, estimated.outputs, BYTES_COMPARED)
    effect = compare_edits(model.module, model.arguments(batch), edits_of(switches), watch=watched)
    before, after = pytree.tree_map_only(Tensor, Tensor.cpu, (effect.before, effect.after))
    return EditOutcome(before, after, moved_most(effect.moved, _MOVED_KEPT), len(watched) == len(every))


def watched_layers(names: Sequence[str], sizes: Mapping[str, int], bound: int) -> list[str]:
    """All layers where their outputs take no more than a bound, and else the outer ones, as deep as that allows."""
    for deepest in range(max(name.count(".") for name in names), -1, -1):
        outer = [name for name in names if name.count(".") <= deepest]
        if sum(sizes.get(name, 0) for name in outer) <= bound:
            return outer
    return [""]


def moved_most(moved: Sequence[LayerMove], most: int) -> tuple[LayerMove, ...]:
    """The farthest moves of layers that are not edited, the whole network aside.

    Of layers that pass on what another returned, as a block does with its last part, the first alone.
    """
    seen, kept = set(), []
    for one in moved:
        measured = (one.move.relative, one.move.largest, one.move.norm, one.move.new_nonfinite)
        passed_on = one.move.relative is not None and measured in seen
        if one.name and not one.edited and not passed_on:
            kept.append(one)
        seen.add(measured)
    return tuple(kept[:most])
