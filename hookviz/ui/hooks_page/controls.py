"""The row of choices: where the hook sits, of which kind it is, and what it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast, get_args

import streamlit as st
from torch import nn

from hookviz.describe import describe
from hookviz.hook_lab import CHOOSE_CHANNELS, STRENGTHS, Action, Experiment, LabKind, LossChoice, LossKind
from hookviz.hooks.choices import called
from hookviz.types import LayerInfo
from hookviz.ui import state
from hookviz.ui.hooks_page.subject import Subject
from hookviz.ui.start_options import start_options

LAYER, KIND, ACTION, CHANNELS, LOSS, TARGET = (
    "hook-layer",
    "hook-kind",
    "hook-action",
    "hook-channels",
    "hook-loss",
    "hook-class",
)
STRONGEST, ALL = "strongest", "all"

_KINDS: dict[str, str] = {
    "forward": "Forward",
    "forward_pre": "Forward pre",
    "backward": "Full backward",
    "backward_pre": "Full backward pre",
}
_ACTIONS: dict[str, str] = {
    "zero": "Zero channels",
    "look": "Only look",
    "scale": "Scale",
    "noise": "Add noise",
    "clamp": "Clamp",
    "mean": "Replace by the mean",
    "not_returned": "Change, return nothing",
    "in_place": "Change in place",
}
_STRENGTHS: dict[str, str] = {"scale": "Factor", "noise": "Standard deviation", "clamp": "Limit, ±"}
_LOSSES: dict[str, str] = {"logit": "Logit", "cross-entropy": "Cross-entropy"}


def choose_experiment(subject: Subject, logits: int | None, ranked: Sequence[int]) -> Experiment:
    """The hook to try; ``logits`` is the number of classes, ``ranked`` the most probable ones."""
    where, kind_place, what, which, strength_place = st.columns([2.5, 1.4, 1.7, 1.4, 1.1], gap="small")
    with where:
        layer = choose_layer(LAYER, "Layer", subject)
    with kind_place:
        kind = cast("LabKind", _choose(KIND, "Kind of hook", list(_KINDS), _KINDS, parameter="kind"))
    functions = start_options().hooks
    with what:
        titles = _ACTIONS | {one: f"{one.partition(':')[2]}()" for one in functions}
        chosen = _choose(ACTION, "What it does", list(titles), titles, parameter="action")
    action = cast("Action", "function" if chosen in functions else chosen)
    with which:
        channels = _choose_channels(subject.info(layer), kind, disabled=action not in CHOOSE_CHANNELS)
    with strength_place:
        strength = _choose_strength(action)
    loss = choose_loss(subject, logits, ranked) if kind.startswith("backward") else LossChoice()
    layout = next((one.name for one in subject.info(layer).layouts if one is not None), "")
    return Experiment(
        layer=layer,
        kind=kind,
        action=action,
        strength=strength,
        channels=_channels(channels) if action in CHOOSE_CHANNELS else None,
        layout="" if layout == "auto" else layout,
        function=chosen if action == "function" else "",
        loss=loss,
    )


def choose_layer(key: str, label: str, subject: Subject) -> str:
    """One of all modules; to begin with, the last convolution."""
    infos = {info.name: info for info in subject.layers if not info.is_operation}
    convolutions = called(subject.model.module, subject.layers, nn.modules.conv._ConvNd)
    ran = [name for name, info in infos.items() if name and info.calls]
    default = (convolutions or ran or list(infos))[-1]
    state.settle_choice(key, list(infos), default, parameter="layer" if key == LAYER else None)
    return st.selectbox(
        label, list(infos), key=key, format_func=lambda name: describe(infos[name]), on_change=state.changed
    )


def choose_loss(subject: Subject, logits: int | None, ranked: Sequence[int]) -> LossChoice:
    """What the gradients are of."""
    if logits is None:
        st.caption("This network gives no classes: the gradients are of the mean of its first output.")
        return LossChoice()
    names = subject.class_names(logits)
    kind_place, class_place, _ = st.columns([1.4, 2.5, 4.2], gap="small")
    with kind_place:
        kind = _choose(LOSS, "Gradients of", list(get_args(LossKind)), _LOSSES, parameter="loss")
    order = [str(index) for index in dict.fromkeys([*ranked, *range(logits)])]
    with class_place:
        state.settle_choice(TARGET, order, order[0], parameter="class")
        target = st.selectbox(
            "Class", order, key=TARGET, format_func=lambda one: f"{names[int(one)]} ({one})", on_change=state.changed
        )
    return LossChoice(kind=cast("LossKind", kind), target=int(target))


def address(experiment: Experiment) -> dict[str, str]:
    """What of the choice goes into the address."""
    channels = state.settled(CHANNELS)
    view = {"layer": experiment.layer, "kind": experiment.kind, "action": experiment.function or experiment.action}
    if experiment.action in CHOOSE_CHANNELS and channels != STRONGEST:
        view["channels"] = channels
    if experiment.is_backward:
        view |= {"loss": experiment.loss.kind, "class": str(experiment.loss.target)}
    return view


def _choose(key: str, label: str, options: list[str], titles: dict[str, str], *, parameter: str) -> str:
    state.settle_choice(key, options, options[0], parameter=parameter)
    return st.selectbox(label, options, key=key, format_func=titles.__getitem__, on_change=state.changed)


def _choose_channels(info: LayerInfo, kind: LabKind, *, disabled: bool) -> str:
    options = [STRONGEST, ALL, *map(str, range(_channel_count(info) if kind in {"forward", "backward_pre"} else 0))]
    titles = {STRONGEST: "Strongest channel", ALL: "All channels"}
    state.settle_choice(CHANNELS, options, STRONGEST, parameter="channels")
    return st.selectbox(
        "Channels",
        options,
        key=CHANNELS,
        format_func=lambda one: titles.get(one, f"Channel {one}"),
        on_change=state.changed,
        disabled=disabled,
        help="The strongest channel has the largest mean of absolute values.",
    )


def _channel_count(info: LayerInfo) -> int:
    if not info.output_shapes or not info.layouts or info.layouts[0] is None:
        return 0
    shape, name = info.output_shapes[0], info.layouts[0].name
    return shape[name.index("C")] if len(name) == len(shape) and "C" in name else 0


def _choose_strength(action: Action) -> float:
    if action not in STRENGTHS:
        st.number_input("Strength", value=None, key="hook-strength-none", disabled=True, placeholder="–")
        return 1.0
    key = f"hook-strength-{action}"
    state.settle_value(key, STRENGTHS[action])
    strength = st.number_input(
        _STRENGTHS[action], key=key, step=0.5, min_value=None if action == "scale" else 0.0, on_change=state.changed
    )
    return float(strength)


def _channels(chosen: str) -> tuple[int, ...] | Literal["strongest"] | None:
    if chosen == STRONGEST:
        return "strongest"
    return None if chosen == ALL else (int(chosen),)
