"""One channel looked at closely, beside the mosaic it was opened in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import streamlit as st

from hookviz.layer_picture import Shown
from hookviz.numeric import to_float64
from hookviz.ui import state
from hookviz.ui.card_channels import CardChannels
from hookviz.ui.channel_distribution import show_channel_distribution
from hookviz.ui.channel_kernel_view import show_kernel
from hookviz.ui.channel_look import show_look
from hookviz.ui.own_component import own_component, own_script
from hookviz.ui.sentences import one_sentence
from hookviz.ui.style import show_named
from hookviz.ui.switch_off import show_switch_off
from hookviz.views import value_text
from hookviz.views.labels import numbers_of

_wire = own_script("channel_wire")
_view = own_component("channel_view", isolate_styles=False)


@st.fragment
def show_channel(channels: CardChannels) -> None:
    """Show the channel that is open on a card, if one is; a fragment of its own, so that a click runs nothing else."""
    position, shown = channels.position, channels.shown
    channel = state.settle_channel(position, shown.maps.channels, channels.belongs_to)
    if channel is not None:
        with st.container(key=f"channel-{position}"), one_sentence():
            _show_head(position, channel)
            values = to_float64(channels.values()[channel])
            show_look(channels, channel)
            show_named(channel_numbers(shown, values, channel))
            show_switch_off(channels, channel)
            show_kernel(channels, channel)
            show_channel_distribution(channels, channel, values)
    else:
        state.forget_position("at", position)
    with st.container(key=f"channel-wire-{position}"):
        _wire(
            key=state.wire_key(position),
            data={"card": position, "channel": channel, "turn": state.channel_turn(position)},
            on_choice_change=lambda: state.take_channel(position),
        )
    state.write_card(position)


def _show_head(position: int, channel: int) -> None:
    turn = state.channel_turn(position)
    _view(key=f"channel-head-{position}", data={"card": position, "channel": channel, "turn": turn})


def channel_numbers(shown: Shown, values: npt.NDArray[np.float64], channel: int) -> dict[str, str]:
    """A channel's statistics by name; of the extremes also where they are, counted from 0 as in the tensor."""
    numbers, statistics = numbers_of(shown.maps.dtype, shown.maps.shows), shown.statistics
    if values.size == 1:
        return {"value": value_text(float(values.item()), numbers, 9)}
    finite = np.isfinite(values)
    extremes = {"min": np.where(finite, values, np.inf).argmin(), "max": np.where(finite, values, -np.inf).argmax()}
    rows = {}
    if finite.any():
        rows = {"mean": value_text(float(statistics.mean[channel])), "sd": value_text(float(statistics.std[channel]))}
        for name, place in extremes.items():
            row, column = divmod(int(place), values.shape[1])
            rows[name] = f"{value_text(float(values[row, column]), numbers)} at row {row}, column {column}"
    counts = {"NaN": statistics.nan, "+Inf": statistics.posinf, "−Inf": statistics.neginf}
    rows["zeros"] = f"{100 * float(statistics.sparsity[channel]):.1f} %"
    return rows | {name: f"{count[channel]:,}" for name, count in counts.items() if count[channel]}
