"""Without and with the hook, side by side: classes as bars, and layers' gradients."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from torch import Tensor

from hookviz.ui.style import escaped
from hookviz.views import number

_SHOWN = 5


def key(was: str = "without the hook", now: str = "with it") -> str:
    """What the two bars of a row are."""
    return (
        f'<div class="hv-key"><span><i class="was"></i>{escaped(was)}</span>'
        f'<span><i class="is"></i>{escaped(now)}</span></div>'
    )


def ranked(logits: Tensor) -> list[int]:
    """The most probable classes, equal ones by index."""
    order: list[int] = logits[0].float().sort(descending=True, stable=True).indices[:_SHOWN].tolist()
    return order


def class_rows(before: Tensor, after: Tensor, names: Sequence[str]) -> str:
    """The most probable classes without and with the hook, in the order without it, those that are new last.

    The longest bar is the largest probability.
    """
    was, now = (logits.float().softmax(1)[0] for logits in (before, after))
    rows, shown = [], list(dict.fromkeys([*ranked(before), *ranked(after)]))
    largest = max(float(shares[index]) for index in shown for shares in (was, now))
    for index in shown:
        first, second = float(was[index]), float(now[index])
        rows.append(
            f'<span class="name" title="{escaped(names[index])}">{escaped(names[index])}</span>'
            f"{_two(first / largest, second / largest)}"
            f'<span class="numbers"><span class="was">{_percent(first)}</span> → '
            f'<span class="is">{_percent(second)}</span></span>'
            f'<span class="delta">{_delta(second - first)}</span>'
        )
    return f'<div class="hv-versus classes">{"".join(rows)}</div>'


def norm_rows(norms: Mapping[str, tuple[float | None, float | None]], chosen: str = "") -> str:
    """A norm of each layer without and with something, on one logarithmic scale."""
    positive = [one for pair in norms.values() for one in pair if one and math.isfinite(one)]
    low = math.log10(min(positive)) - 0.3 if positive else 0.0
    span = max(math.log10(max(positive)) - low, 0.3) if positive else 1.0

    def share(norm: float | None) -> float:
        return (math.log10(norm) - low) / span if norm and math.isfinite(norm) else 0.0

    rows = "".join(
        f'<span class="name hv-mono{" chosen" if name == chosen else ""}" title="{escaped(name)}">'
        f"{escaped(name)}</span>"
        f"{_two(share(was), share(now))}"
        f'<span class="numbers"><span class="was">{_norm(was)}</span> → <span class="is">{_norm(now)}</span></span>'
        for name, (was, now) in norms.items()
    )
    return f'<div class="hv-scroll"><div class="hv-versus layers">{rows}</div></div>'


def _two(was: float, now: float) -> str:
    return (
        f'<span class="two"><span class="was" style="width:{100 * was:.2f}%"></span>'
        f'<span class="is" style="width:{100 * now:.2f}%"></span></span>'
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _delta(difference: float) -> str:
    points = 100 * difference
    if difference == 0:
        return "same"
    return f"{points:+.1f}".replace("-", "−") if abs(points) >= 0.05 else "< ±0.1"


def _norm(norm: float | None) -> str:
    return "none" if norm is None else number(norm)
