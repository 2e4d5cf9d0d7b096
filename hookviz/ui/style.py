"""The page's own looks, beyond what the theme in .streamlit/config.toml says. Colours are mixed from the theme's."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Literal

import streamlit as st

_CSS = """
<style>
.block-container, [data-testid="stMainBlockContainer"] { padding-top: 4.4rem; max-width: 1280px; }
.hv-brand { font-size: 1.45rem; font-weight: 700; letter-spacing: -0.02em; line-height: 1.1; }
.hv-quiet { opacity: .66; font-size: .82rem; line-height: 1.45; }
.hv-mono { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.hv-saw img { display: block; width: 100%; max-width: 288px; border-radius: 8px; image-rendering: pixelated; }
.hv-bars { display: grid; grid-template-columns: minmax(7rem, 13rem) 1fr 4rem; gap: .55rem .9rem; align-items: center; }
.hv-bars .name { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; font-size: .92rem; }
.hv-bars .track { height: .58rem; border-radius: 99px; background: color-mix(in srgb, currentColor 9%, transparent); }
.hv-bars .bar { height: 100%; min-width: 2px; border-radius: 99px; background: #3b73b9; }
.hv-bars .share { text-align: right; font-variant-numeric: tabular-nums; font-weight: 600; font-size: .92rem; }
.hv-title { display: flex; flex-wrap: wrap; align-items: baseline; gap: .3rem .65rem; line-height: 1.5; }
.hv-title .layer { font-weight: 700; font-size: 1.06rem; overflow-wrap: anywhere; }
.hv-badge { display: inline-block; padding: .05rem .6rem; border-radius: 99px; font-size: .78rem; font-weight: 600; }
.hv-badge.good { color: #17713a; background: color-mix(in srgb, #22a352 17%, transparent); }
.hv-badge.warn { color: #8a5a00; background: color-mix(in srgb, #f0a400 22%, transparent); }
.hv-badge.bad { color: #b3261e; background: color-mix(in srgb, #e5382d 17%, transparent); }
.hv-dark .hv-badge.good { color: #6ee09a; } .hv-dark .hv-badge.warn { color: #ffca5c; }
.hv-dark .hv-badge.bad { color: #ff9a91; } .hv-dark .hv-bars .bar { background: #6ea8ec; }
.hv-mosaic { position: relative; width: 100%; margin: 0; container-type: inline-size; }
.hv-mosaic img { display: block; width: 100%; height: auto; image-rendering: pixelated; }
@media (max-resolution: 1.5dppx) { .hv-mosaic.dense img { image-rendering: auto; } }
.hv-mosaic .cell { position: absolute; outline: 1px solid #fff; }
.hv-dark .hv-mosaic .cell { outline-color: #0e1117; }
.hv-mosaic .number { position: absolute; left: 0; top: 0; padding: 0 .28em; border-radius: 0 0 .3em 0;
  font-size: clamp(7px, 1.75cqw, 11px); line-height: 1.45; font-variant-numeric: tabular-nums;
  color: #fff; background: rgba(10, 14, 22, .58); pointer-events: none; }
[class*="st-key-channel-wire-"] { position: absolute; width: 0; height: 0; overflow: hidden; }
[class*="st-key-channel-"] { scroll-margin: 4.5rem 0 1rem; }
.hv-about { min-height: 2.9em; }
.hv-positions img { display: block; width: 100%; border-radius: 4px; image-rendering: pixelated; }
.hv-part { margin-top: .35rem; }
.hv-part-title { font-weight: 600; font-size: .88rem; margin-bottom: .35rem; }
.hv-kernel .numbers { display: grid; text-align: center; font-size: .72rem; opacity: .66; margin-top: .15rem;
  font-variant-numeric: tabular-nums; }
.hv-kernel { margin-bottom: .3rem; } .hv-kernel img { display: block; width: 100%; image-rendering: pixelated;
  border-radius: 4px; }
.hv-weights { display: grid; grid-template-columns: max-content minmax(6rem, 1fr) max-content; gap: .2rem .7rem;
  align-items: center; max-width: 300px; margin-bottom: .3rem; font-size: .82rem; font-variant-numeric: tabular-nums; }
.hv-weights .what { opacity: .66; } .hv-weights .track { position: relative; height: .58rem;
  background: linear-gradient(90deg, transparent calc(50% - .5px), color-mix(in srgb, currentColor 45%, transparent) 0
  calc(50% + .5px), transparent 0); }
.hv-weights .bar { position: absolute; height: 100%; border-radius: 2px; background: #b2423f; }
.hv-weights .bar.less { background: #3b73b9; }
.hv-dark .hv-weights .bar { background: #e8807b; } .hv-dark .hv-weights .bar.less { background: #6ea8ec; }
.hv-drawn img { display: block; max-width: 100%; max-height: 26rem; border-radius: 8px; }
.hv-figure { overflow-x: auto; }
.hv-figure img { display: block; width: 100%; height: auto; }
.hv-value { font-size: clamp(2rem, 6cqw, 3.2rem); font-weight: 600; line-height: 1.3; overflow-wrap: anywhere;
  font-variant-numeric: tabular-nums; }
.hv-value .what { font-size: .9rem; font-weight: 400; opacity: .62; margin-right: .6rem; }
.hv-legend { display: flex; flex-wrap: wrap; gap: .2rem .9rem; margin-top: .45rem; font-size: .8rem; opacity: .85; }
.hv-legend .swatch { display: inline-block; width: .75em; height: .75em; border-radius: 2px; margin-right: .35em;
  vertical-align: -.05em; outline: 1px solid color-mix(in srgb, currentColor 25%, transparent); }
.hv-ramp { display: inline-block; width: 6.5rem; height: .62em; border-radius: 3px; vertical-align: -.02em;
  margin: 0 .45em; }
.hv-numbers { display: flex; flex-wrap: wrap; gap: .3rem 1.25rem; font-variant-numeric: tabular-nums; font-size: .88rem;
} .hv-numbers .what { opacity: .62; margin-right: .35em; }
[class*="st-key-channel-actions-"] button { padding: .15rem .55rem; min-height: 1.9rem; }
[class*="st-key-channel-actions-"] button p, .st-key-edits button p { font-size: .84rem; }
[class*="st-key-channel-effect-"] { min-height: 2.5rem; }
.st-key-edits button { padding: .1rem .6rem; min-height: 1.85rem; border-radius: 99px; text-align: left; }
.st-key-edits button p { overflow-wrap: anywhere; }
.hv-effect { font-size: .88rem; font-variant-numeric: tabular-nums; }
.st-key-scale button { padding-inline: .4rem; }
[class*="st-key-shows-"] button { padding-inline: .6rem; }
@media (max-width: 640px) {
  .block-container, [data-testid="stMainBlockContainer"] { padding-top: 4.6rem; }
  .hv-bars { grid-template-columns: minmax(6rem, 8.5rem) 1fr 3.6rem; }
  [class*="st-key-look-"] { flex-direction: column; align-items: stretch; }
  [class*="st-key-look-"] > * { width: 100%; }
}
[data-testid="stSidebar"] [data-testid="stFileUploaderDropzone"] { padding: .7rem .8rem; }
</style>
"""


def apply_style() -> None:
    """Put the style sheet on the page."""
    st.html(_CSS)


def is_dark() -> bool:
    """Whether the reader's theme is dark."""
    return st.context.theme.type == "dark"


def theme_name() -> Literal["light", "dark"]:
    """The reader's theme as the views name it."""
    return "dark" if is_dark() else "light"


def show(markup: str) -> None:
    """Show markup of our own making in the reader's theme; whatever comes from elsewhere must be escaped before."""
    st.html(f'<div class="hv-{theme_name()}">{markup}</div>')


def escaped(text: object) -> str:
    """Text made safe for markup."""
    return html.escape(str(text), quote=True)


def show_named(values: Mapping[str, str]) -> None:
    """Show values in a row, each with its name."""
    cells = "".join(
        f'<span><span class="what">{escaped(name)}</span>{escaped(value)}</span>' for name, value in values.items()
    )
    show(f'<div class="hv-numbers">{cells}</div>')


def badge(kind: str, text: str) -> str:
    """A small coloured label: ``good``, ``warn`` or ``bad``."""
    return f'<span class="hv-badge {kind}">{escaped(text)}</span>'
