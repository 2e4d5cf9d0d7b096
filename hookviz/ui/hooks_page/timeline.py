"""The order in which hooks fire, around those of one layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hookviz.hook_lab import Experiment
from hookviz.hooks import Firing
from hookviz.ui.style import escaped

_AROUND = 4
"""Firings shown before and behind each one of the layer's."""

_TITLES = {
    "forward_pre": "forward pre",
    "forward": "forward",
    "backward_pre": "full backward pre",
    "backward": "full backward",
}
_HEAD = (
    '<div class="hv-line head"><span class="right">#</span><span>kind</span><span>layer</span><span>what it is shown'
    '</span><span class="right">at, ms</span></div>'
)


def timeline_markup(firings: Sequence[Firing], experiment: Experiment, *, whole: bool) -> str:
    """Numbered lines, the hook's own marked; without ``whole``, those far from it are counted only."""
    yours = {one.order for one in firings if _is(one, experiment)}
    shown = {
        one.order for one in firings if whole or not yours or any(abs(one.order - order) <= _AROUND for order in yours)
    }
    lines = "".join(_lines(firings, yours, shown))
    return f'<div class="hv-scroll">{_HEAD}{lines}</div>'


def _lines(firings: Sequence[Firing], yours: set[int], shown: set[int]) -> Iterator[str]:
    hidden = 0
    for one in firings:
        if one.order not in shown:
            hidden += 1
            continue
        yield _gap(hidden)
        hidden = 0
        yield _line(one, yours=one.order in yours)
    yield _gap(hidden)


def _gap(hidden: int) -> str:
    if not hidden:
        return ""
    words = f"{hidden} more" if hidden > 1 else "1 more"
    return f'<div class="hv-line gap"><span class="right">⋮</span><span>{words}</span></div>'


def _line(one: Firing, *, yours: bool) -> str:
    call = f" · call {one.call + 1}" if one.call else ""
    shapes = ", ".join(" × ".join(map(str, shape)) or "scalar" for shape in one.shapes) or "no tensor"
    name = escaped(one.layer or "(whole network)")
    return (
        f'<div class="hv-line{" yours" if yours else ""}"><span class="right">{one.order}</span>'
        f'<span class="tag {one.kind}"><i></i>{_TITLES[one.kind]}</span>'
        f'<span class="layer hv-mono" title="{name}">{name}{call}</span>'
        f'<span class="layer" title="{escaped(shapes)}">{escaped(shapes)}</span>'
        f'<span class="right">{one.microseconds / 1000:.2f}</span></div>'
    )


def _is(firing: Firing, experiment: Experiment) -> bool:
    return firing.layer == experiment.layer and firing.kind == experiment.kind
