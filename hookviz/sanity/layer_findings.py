"""What the measured activations of every layer say, each in a sentence at the layer that is the cause."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from statistics import median

import numpy as np
import numpy.typing as npt

from hookviz.channels import dead_channels_apply
from hookviz.sanity.activations import GATES, RECTIFIERS
from hookviz.sanity.channel_tally import ChannelTally
from hookviz.sanity.findings import Finding, Severity, at_start, counted, named, percent
from hookviz.sanity.layer_stream import LayerStream, LayerTally, Place
from hookviz.sanity.thresholds import Thresholds

FEWEST_VALUES = 16
"""Of a channel; with fewer, being zero or constant everywhere says nothing."""

Mask = npt.NDArray[np.bool_]


def layer_findings(stream: LayerStream, thresholds: Thresholds) -> list[Finding]:
    """Everything found in the activations; nothing where no image was seen."""
    if not stream.images:
        return []
    return [
        *_silent(stream, thresholds),
        *_gains(stream, thresholds),
        *_channels(stream, "constant", thresholds.constant_channels),
        *_channels(stream, "duplicated", thresholds.duplicated_channels),
        *_saturated(stream, thresholds),
        *_always_on(stream),
        *_half_overflow(stream, thresholds),
    ]


def _judged(stream: LayerStream) -> Iterator[tuple[Place, LayerTally, ChannelTally]]:
    """Tensors with enough values in each channel."""
    for place, tally in stream.tallies.items():
        if tally.channels is not None and tally.channels.elements >= FEWEST_VALUES:
            yield place, tally, tally.channels


def _silent(stream: LayerStream, thresholds: Thresholds) -> Iterator[Finding]:
    """Layers and channels that are zero everywhere, where what came in was not."""
    some: dict[Place, Mask] = {}
    silent_before = False
    for place, tally, channels in _judged(stream):
        name = stream.info(place.layer).class_name
        dead = channels.dead
        share = float(dead.mean())
        follows, silent_before = silent_before, bool(dead.all())
        if share >= thresholds.dead_layer and dead_channels_apply(name):
            if tally.incoming.squares == 0 if tally.incoming.count else follows:
                continue  # another layer is the cause
            yield _finding(
                "error",
                "dead_layer",
                f"{_start(place)} is dead: every value is zero on {_images(stream)}.",
                "No signal of the image gets past it, except around it.",
                "Look at its weights and bias; a rectifier gives only zeros where all that comes in is negative.",
                (place,),
                share,
                thresholds.dead_layer,
                dead,
            )
        elif dead.any() and name in RECTIFIERS:
            some[place] = dead
    yield from _negative(stream)
    if some:
        yield _dead_channels(stream, some, thresholds)


def _negative(stream: LayerStream) -> Iterator[Finding]:
    """Layers that give only negative values to a rectifier which therefore is dead."""
    dead = {
        place.layer
        for place, _, channels in _judged(stream)
        if stream.info(place.layer).class_name in RECTIFIERS and bool(channels.dead.all())
    }
    places = list(stream.tallies)
    for position, place in enumerate(places[:-1]):
        following, channels = places[position + 1], stream.tallies[place].channels
        if following.layer in dead and channels is not None and bool((channels.high < 0).all()):
            yield _finding(
                "error",
                "all_negative",
                f"{_start(place)} gives only negative values, so the rectifier behind it, {named([following.layer])}, "
                "gives only zeros.",
                "No signal of the image gets past it, except around it.",
                "Look at its bias: one far below zero switches a whole layer off, and its gradient with it.",
                (place,),
                float(channels.high.max()),
                0.0,
            )


def _dead_channels(stream: LayerStream, some: Mapping[Place, Mask], thresholds: Thresholds) -> Finding:
    worst = max(some, key=lambda place: float(some[place].mean()))
    share, dead = float(some[worst].mean()), some[worst]
    enough = stream.images >= thresholds.fewest_images_for_dead
    total = sum(int(mask.sum()) for mask in some.values())
    return _finding(
        "warning" if enough and share >= thresholds.dead_channels else "note",
        "dead_channels",
        f"{counted(total, 'channel')} in {counted(len(some), 'rectifier')} "
        f"{'is' if total == 1 else 'are'} zero at every position of {_every_image(stream)}; most in "
        f"{named([worst.layer])}: {int(dead.sum())} of {len(dead)} ({percent(share)}).",
        "A channel that is never active carries nothing; single ones are usual, and other images may wake them.",
        "Check with more images before you call them dead; many dead channels point to a learning rate too large.",
        (worst, *(place for place in some if place != worst)),
        share,
        thresholds.dead_channels,
        dead,
    )


def _gains(stream: LayerStream, thresholds: Thresholds) -> Iterator[Finding]:
    """Layers whose output is far larger or smaller than their input, by themselves or beside their like."""
    gains = {
        place: gain
        for place, tally in stream.tallies.items()
        if (gain := tally.gain) is not None and gain > 0 and _is_weighty(stream, place)
    }
    alike: dict[str, list[float]] = defaultdict(list)
    for place, gain in gains.items():
        alike[stream.info(place.layer).class_name].append(gain)
    for place, gain in gains.items():
        peers = alike[stream.info(place.layer).class_name]
        usual = float(median(peers)) if len(peers) >= 4 else None
        grows = gain > thresholds.gain or (usual is not None and gain > usual * thresholds.gain_against_peers)
        shrinks = gain < 1 / thresholds.gain and (usual is None or gain < usual / thresholds.gain_against_peers)
        if not (grows or shrinks):
            continue
        against = f"; the median of the network's {stream.info(place.layer).class_name} is {_times(usual)}"
        yield _finding(
            "warning",
            "exploding_scale" if grows else "collapsing_scale",
            f"{_start(place)} makes values {_times(gain)} as large as what comes in (root mean square)"
            f"{'' if usual is None else against}.",
            "Scale that jumps at one layer drowns what other paths add, overflows half precision, or vanishes.",
            "Compare its weights with the original checkpoint; look for a factor applied twice or left out.",
            (place,),
            gain,
            thresholds.gain if grows else 1 / thresholds.gain,
        )


def _is_weighty(stream: LayerStream, place: Place) -> bool:
    name = stream.info(place.layer).class_name
    return "Conv" in name or "Linear" in name


def _channels(stream: LayerStream, what: str, limit: float) -> Iterator[Finding]:
    found: dict[Place, Mask] = {}
    before: ChannelTally | None = None
    for place, _tally, channels in _judged(stream):
        mask: Mask = getattr(channels, what) & ~_told_before(before, channels, what)
        if mask.any():
            found[place] = mask
        before = channels
    if not found:
        return
    worst = max(found, key=lambda place: float(found[place].mean()))
    share, mask = float(found[worst].mean()), found[worst]
    words = {
        "constant": (
            "have one value everywhere",
            "A constant channel says nothing of the image; behind a batch norm it is only a bias.",
            "Single ones are usual. Many point to weights that were zeroed or pruned, or to an input without variety.",
        ),
        "duplicated": (
            "equal another one everywhere",
            "Two channels that always agree do the work of one.",
            "Single ones are harmless. Many point to a checkpoint that was copied or an input with equal channels.",
        ),
    }[what]
    where = f" in {counted(len(found), 'layer')}; most in" if len(found) > 1 else " in"
    total = sum(int(one.sum()) for one in found.values())
    yield _finding(
        "warning" if share >= limit and (share < 1 or what == "constant") else "note",
        f"{what}_channels",
        f"{counted(total, 'channel')}{where} {named([worst.layer])}"
        f"{f' ({int(mask.sum())} of {len(mask)})' if len(found) > 1 else f' (of {len(mask)})'} "
        f"{words[0] if total != 1 else words[0].replace('have', 'has', 1).replace('equal', 'equals', 1)} "
        f"on {_images(stream)}: {percent(share)} of that layer.",
        *words[1:],
        (worst, *(place for place in found if place != worst)),
        share,
        limit,
        mask,
    )


def _told_before(before: ChannelTally | None, channels: ChannelTally, what: str) -> Mask:
    """Channels that were silent or the same already in the tensor just before, with as many channels."""
    if before is None or len(before.values) != len(channels.values):
        return np.zeros(len(channels.values), np.bool_)
    told: Mask = before.dead | before.constant if what == "constant" else before.duplicated
    return told


def _saturated(stream: LayerStream, thresholds: Thresholds) -> Iterator[Finding]:
    for place, _tally, channels in _judged(stream):
        mask = channels.saturated(thresholds.saturated)
        share = float(mask.mean())
        if share < thresholds.saturated_channels or not channels.at_end.any():
            continue
        name = stream.info(place.layer).class_name
        yield _finding(
            "note" if name in GATES else "warning",
            "saturated",
            f"{percent(share)} of the channels of {named([place.layer])} ({name}) stand at an end of its range in at "
            f"least {percent(thresholds.saturated)} of their values.",
            "A saturated activation tells values apart no more, and passes no gradient.",
            "Look at the scale of what comes in, and at how the images are normalised.",
            (place,),
            share,
            thresholds.saturated_channels,
            mask,
        )


def _always_on(stream: LayerStream) -> Iterator[Finding]:
    found = {
        place: mask
        for place, _, channels in _judged(stream)
        if stream.info(place.layer).class_name in RECTIFIERS and (mask := channels.always_on).any()
    }
    if not found:
        return
    worst = max(found, key=lambda place: float(found[place].mean()))
    total, mask = sum(int(one.sum()) for one in found.values()), found[worst]
    yield _finding(
        "note",
        "always_on",
        f"{counted(total, 'channel')} in {counted(len(found), 'rectifier')} "
        f"{'is' if total == 1 else 'are'} never zero; most in {named([worst.layer])}: "
        f"{int(mask.sum())} of {len(mask)} ({percent(float(mask.mean()))}).",
        "A rectifier that never rectifies is linear there.",
        "Nothing, where they are few.",
        (worst, *(place for place in found if place != worst)),
        float(mask.mean()),
        None,
        mask,
    )


def _half_overflow(stream: LayerStream, thresholds: Thresholds) -> Iterator[Finding]:
    """Values that float16 cannot hold, in a network that computes in something wider."""
    beyond: dict[Place, float] = {}
    for place, tally in stream.tallies.items():
        seen = tally.summary.summary(bins=1)
        largest = max(abs(seen.min or 0.0), abs(seen.max or 0.0))
        if largest > thresholds.half_overflow and seen.dtype not in {"float16", "bfloat16"}:
            beyond[place] = largest
    if beyond:
        first = next(iter(beyond))
        yield _finding(
            "warning",
            "half_overflow",
            f"{_start(first)} reaches {beyond[first]:,.0f}, more than half precision can hold "
            f"({thresholds.half_overflow:,.0f}){_and_more(len(beyond) - 1)}.",
            "In float16 these values become infinite, and the answer NaN.",
            "Stay with float32 or bfloat16 for this network.",
            tuple(beyond),
            beyond[first],
            thresholds.half_overflow,
        )


def _and_more(count: int) -> str:
    return f"; so do {counted(count, 'other layer')}" if count else ""


def _finding(  # noqa: PLR0913, PLR0917  # the parts of a finding in the order in which they are read
    severity: Severity,
    kind: str,
    what: str,
    why: str,
    advice: str,
    places: tuple[Place, ...],
    amount: float,
    threshold: float | None,
    mask: Mask | None = None,
) -> Finding:
    layers = tuple(dict.fromkeys(place.layer for place in places))
    channels = () if mask is None else tuple(int(one) for one in np.flatnonzero(mask)[:100])
    return Finding(severity, "layers", kind, what, why, advice, layers, amount, threshold, channels)


def _start(place: Place) -> str:
    return at_start(place.layer) + (f" (call {place.call + 1})" if place.call else "")


def _times(factor: float | None) -> str:
    if factor is None:
        return ""
    return f"{factor:,.0f} times" if factor >= 10 else f"{factor:.2g} times"


def _images(stream: LayerStream) -> str:
    return "this image" if stream.images == 1 else f"all {stream.images:,} images"


def _every_image(stream: LayerStream) -> str:
    return "this one image" if stream.images == 1 else f"all {stream.images:,} images"
