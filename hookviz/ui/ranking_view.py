"""Which channels of a layer matter to a class: what it loses when each is zero, next to cheaper guesses."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import streamlit as st

from hookviz.hooks import ChannelRanking
from hookviz.hooks.channel_ranking import RankedBy
from hookviz.types import Prediction
from hookviz.ui import state
from hookviz.ui.attribution_view import show_attribution
from hookviz.ui.bar_rows import BarRow, show_bar_rows
from hookviz.ui.card_channels import CardChannels
from hookviz.ui.rankings import probable_classes, ranking_of, rankings
from hookviz.ui.resources import digest
from hookviz.ui.sentences import one_sentence, sentence
from hookviz.ui.switch_off import edit_place
from hookviz.ui.switches import EditPlace
from hookviz.views import number

_SHOWN = 10
_EVERY = 1.0
"""Seconds between two looks at the progress."""

_TITLES: dict[RankedBy, str] = {
    "logit_drop": "Drop in logit",
    "probability_drop": "Drop in points",
    "mean_activation": "Mean activation",
    "gradient_times_activation": "Gradient × activation",
}


@dataclass(frozen=True, slots=True)
class _Wish:
    """A ranking by what it is known by, and what a card's asking for it is noted as."""

    asked_as: str
    key: tuple[tuple[str, str], EditPlace, int]

    @property
    def place(self) -> EditPlace:
        """Where the channels are."""
        return self.key[1]

    @property
    def target(self) -> int:
        """The class."""
        return self.key[2]


def show_ranking(channels: CardChannels) -> None:
    """Offer to rank the channels on a card, where the network names classes and the layer can be edited."""
    place, classes = edit_place(channels), probable_classes(channels.tensor.network)
    if isinstance(place, str) or not classes:
        return
    position = channels.position
    fold = st.expander("Which channels matter", key=f"ranking-{position}", on_change="rerun")
    if fold.open:
        with fold, one_sentence():
            target = _choose_class(channels, classes)
            wish = _Wish(f"ranking {position}", (channels.tensor.network.key, place, target))
            ranking = _found(channels, wish)
            if ranking is not None:
                _show(position, ranking)
            show_attribution(channels, target)


def _choose_class(channels: CardChannels, classes: tuple[Prediction, ...]) -> int:
    """By default the most probable one; a key of its own for each picture, whose class that is."""
    names = channels.tensor.network.model().categories
    first = [one.index for one in classes]
    others = sorted(set(range(len(names))) - set(first))
    shares = {one.index: f" · {100 * one.probability:.1f} %" for one in classes}
    of = digest(str(channels.tensor.network.key).encode())[:12]
    target: int = st.selectbox(
        "What each channel, switched off alone, takes from the class",
        [*first, *others],
        format_func=lambda index: names[index] + shares.get(index, ""),
        key=f"ranked-class-{channels.position}-{of}",
        width=420,
    )
    return target


def _found(channels: CardChannels, wish: _Wish) -> ChannelRanking | None:
    """The ranking, once it is there; until then the offer to make it, or how far it is."""
    ranking = rankings().find(wish.key)
    if ranking is not None:
        return ranking
    job = rankings().job(wish.key) if state.asked_for(wish.asked_as) == str(wish.key) else None
    if job is not None and not job.failure:
        _show_progress(channels, wish)
        return None
    if job is not None:
        st.error(sentence(job.failure), icon=":material/error:")
    _offer(channels, wish)
    return None


def _offer(channels: CardChannels, wish: _Wish) -> None:
    count = channels.shown.maps.channels
    with st.container(horizontal=True, vertical_alignment="center", key=f"ranking-offer-{channels.position}"):
        st.button("Start", key=f"rank-{channels.position}", on_click=_start, args=(channels, wish))
        st.caption(
            f"{count:,} channels, each zero in a forward of its own, up to 15 of them at a time. After the first batch "
            "you see how long it takes; the page can be used meanwhile.",
            width="stretch",
        )


def _start(channels: CardChannels, wish: _Wish) -> None:
    state.ask_for(wish.asked_as, str(wish.key))
    rankings().start(wish.key, ranking_of(channels.tensor.network, wish.place, wish.target))


def _cancel(wish: _Wish) -> None:
    state.ask_for(wish.asked_as, "")
    rankings().leave(wish.key)


@st.fragment(run_every=_EVERY)
def _show_progress(channels: CardChannels, wish: _Wish) -> None:
    """Show how far the ranking is, again and again; a run of the whole page ends that."""
    job = rankings().job(wish.key)
    if job is None or job.ended or state.asked_for(wish.asked_as) != str(wish.key):
        st.rerun(scope="app")
    count, seconds = channels.shown.maps.channels, time.monotonic() - job.began
    with st.container(horizontal=True, vertical_alignment="center", key=f"ranking-runs-{channels.position}"):
        st.progress(min(job.done / count, 1.0), _progress(job.done, count, seconds))
        st.button("Cancel", key=f"cancel-ranking-{channels.position}", on_click=_cancel, args=(wish,))


def _progress(count: int, total: int, seconds: float) -> str:
    """How far it is, and how long the rest takes if it goes on like this."""
    if not count:
        return f"0 of {total:,} channels"
    left = seconds / count * (total - count)
    return f"{count:,} of {total:,} channels · about {max(1, round(left))} s left"


def _show(position: int, ranking: ChannelRanking) -> None:
    available = [by for by in _TITLES if getattr(ranking, by) is not None]
    by: RankedBy = st.segmented_control(
        "Sort by",
        available,
        default="logit_drop",
        format_func=lambda one: _TITLES[one],
        key=f"ranked-by-{position}",
        required=True,
    )
    key = f"ranked-channels-{position}"
    show_bar_rows(
        key,
        ranking_rows(ranking, by, available),
        label=f"The {_SHOWN} channels with the largest {_TITLES[by].lower()}",
        does="Open channel",
        heads=["channel", "", *(_TITLES[one].lower() for one in available)],
        on_choice=lambda channel: state.walk_to(position, int(channel)),
        finds=f"st-key-channel-{position}",
    )
    st.caption(_about(ranking))


def ranking_rows(ranking: ChannelRanking, by: RankedBy, columns: list[RankedBy]) -> list[BarRow]:
    """The first channels in this order, with bars of what they are sorted by."""
    values = getattr(ranking, by)
    largest = float(np.nanmax(np.abs(values))) or 1.0
    return [
        BarRow(
            id=str(channel),
            name=str(channel),
            share=float(np.nan_to_num(values[channel])) / largest,
            texts=[_text(one, float(getattr(ranking, one)[channel])) for one in columns],
        )
        for channel in ranking.order(by)[:_SHOWN]
    ]


def _text(by: RankedBy, value: float) -> str:
    return number(100 * value, 3) if by == "probability_drop" else number(value, 3)


def _about(ranking: ChannelRanking) -> str:
    together = (
        f"Many channels ran in one batch, beside the image untouched; scores agree to {number(ranking.rounding, 2)}."
        if ranking.batched
        else "Channels ran one by one."
    )
    untouched = f"a logit of {number(ranking.logit)} and a probability of {100 * ranking.probability:.1f} %"
    return f"With nothing off the class has {untouched}. {together}"
