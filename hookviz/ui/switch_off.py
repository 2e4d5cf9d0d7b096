"""Changing the channel that is open on a card: switching it off, and other ways to see what it is good for."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from hookviz.ui import state
from hookviz.ui.card_channels import CardChannels
from hookviz.ui.style import escaped, show
from hookviz.ui.switches import Action, EditPlace, Numbers, Switch, place_of, switch_of

_TITLES: dict[Action, str] = {
    "zero": "Switch off",
    "mean": "Mean",
    "scale": "Scale",
    "noise": "Noise",
    "clamp": "Clamp",
    "keep": "Keep only",
}
_HELP: dict[Action, str] = {
    "zero": "Every value of this channel becomes 0.",
    "mean": "Every value becomes the channel’s mean over its positions.",
    "scale": "Every value is multiplied.",
    "noise": "Normal noise is added, always the same.",
    "clamp": "Values beyond a limit become the limit.",
    "keep": "Every other channel of the layer becomes 0.",
}
_ACTIVE = "background: #3b73b9; border-color: #3b73b9; color: #fff;"
"""The primary colour of the light theme, on which white can be read in both."""


@st.fragment
def show_switch_off(channels: CardChannels, channel: int) -> None:
    """Show what can be done to a channel, and what that does to the prediction."""
    place = edit_place(channels)
    if isinstance(place, str):
        show(f'<p class="hv-quiet">{escaped(place)}</p>')
        return
    now = switch_of(state.switches(), place, channel)
    _show_actions(channels, channel, place, now)
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key=f"channel-effect-{channels.position}"
    ):
        if now is not None:
            _choose_numbers(channels.position, now)
        _show_effect(channels.position, now)
    if not state.edits_are_shown():
        st.rerun(scope="app")


def edit_place(channels: CardChannels) -> EditPlace | str:
    """Where the channels on a card can be edited; where they cannot, the reason in a sentence."""
    of, shown = channels.tensor, channels.shown
    shape = tuple(shown.tensor.shape)
    return place_of(of.info, of.call, of.path, of.layout, shape=shape, maps=shown.maps.channels)


def _show_actions(channels: CardChannels, channel: int, place: EditPlace, now: Switch | None) -> None:
    with st.container(horizontal=True, gap="xxsmall", key=f"channel-actions-{channels.position}"):
        for action, title in _TITLES.items():
            active = now is not None and now.action == action
            refusal = _refusal(channels, action)
            st.button(
                title,
                key=f"action-{action}-{channels.position}",
                help=refusal or (f"{_HELP[action]} Once more: as it was." if active else _HELP[action]),
                disabled=bool(refusal),
                on_click=_toggle(channels, channel, place, action, now),
            )


def _toggle(
    channels: CardChannels, channel: int, place: EditPlace, action: Action, now: Switch | None
) -> Callable[[], None]:
    if now is not None and now.action == action:
        return lambda: state.remove_switch(now)
    return lambda: state.set_switch(Switch(place, channel, action, _beginning(channels, channel, action)))


def _refusal(channels: CardChannels, action: Action) -> str:
    tensor = channels.shown.tensor
    if action in {"mean", "scale", "noise"} and not (tensor.is_floating_point() or tensor.is_complex()):
        return "This needs floating-point values."
    return "A single value is its own mean." if action == "mean" and tensor.ndim == 2 else ""


def _beginning(channels: CardChannels, channel: int, action: Action) -> Numbers:
    """Numbers that do something: the channel's own sd as noise, and its own range from the mean up cut off."""
    statistics = channels.shown.statistics
    mean, std = float(statistics.mean[channel]), float(statistics.std[channel])
    match action:
        case "scale":
            return (2.0,)
        case "noise":
            return (_rounded(std) or 1.0,)
        case "clamp":
            return (None, _rounded(mean))
    return ()


def _rounded(value: float) -> float:
    """Two significant digits; 0 where it is not finite."""
    return float(f"{value:.2g}") if abs(value) < float("inf") else 0.0


def _choose_numbers(position: int, now: Switch) -> None:
    titles = {"scale": ["Factor"], "noise": ["sd"], "clamp": ["Low", "High"]}.get(now.action, [])
    chosen = tuple(
        _choose_number(f"{now.action}-{number}-{position}-{now.channel}", title, value)
        for number, (title, value) in enumerate(zip(titles, now.numbers, strict=True))
    )
    if chosen != now.numbers and any(one is not None for one in chosen):
        state.set_switch(Switch(now.place, now.channel, now.action, chosen))


def _choose_number(key: str, title: str, value: float | None) -> float | None:
    st.caption(title, width="content")
    optional = title in {"Low", "High"}
    chosen = st.number_input(
        title,
        value=value,
        step=None,
        min_value=0.0 if title == "sd" else None,
        format="%.6g",
        key=f"edit-{key}",
        width=110,
        placeholder="no limit" if optional else None,
        label_visibility="collapsed",
    )
    return value if chosen is None and not optional else chosen


def _show_effect(position: int, now: Switch | None) -> None:
    """One line, whether something is changed or not, so that nothing below it moves; and the mark of the action."""
    told = state.effect_told()
    words = told[:1].upper() + told[1:] if told else "Change this channel and see what the prediction becomes."
    kind = "hv-quiet" if not told else "hv-effect"
    note = "" if now or not told else " (by other edits)"
    show(f'<div class="{kind}">{escaped(words)}{note}</div>{_mark(position, now)}')


def _mark(position: int, now: Switch | None) -> str:
    """The look of the active button: one of another type would be another element, which the focus does not follow."""
    if now is None:
        return ""
    button = f".st-key-action-{now.action}-{position} button"
    return f"<style>{button}, {button}:hover, {button}:focus {{ {_ACTIVE} }}</style>"
