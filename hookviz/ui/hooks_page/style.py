"""The looks of the Hooks page, beyond those of all pages."""

from __future__ import annotations

import streamlit as st

_VERSUS = """
<style>
.hv-versus { display: grid; grid-template-columns: fit-content(10.5rem) minmax(4rem, 1fr) auto auto; gap: .6rem .8rem;
  align-items: center; font-variant-numeric: tabular-nums; font-size: .9rem; }
.hv-versus .name { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.hv-versus .two { display: grid; gap: 2px; }
.hv-versus .two span { display: block; height: .38rem; min-width: 2px; border-radius: 99px; }
.hv-versus .two .was { background: color-mix(in srgb, currentColor 28%, transparent); }
.hv-versus .two .is { background: #3b73b9; } .hv-dark .hv-versus .two .is { background: #6ea8ec; }
.hv-versus .numbers { text-align: right; white-space: nowrap; }
.hv-versus .numbers .was { opacity: .66; } .hv-versus .numbers .is { font-weight: 600; }
.hv-versus .delta { text-align: right; min-width: 2.6rem; white-space: nowrap; opacity: .8; }
.hv-versus .chosen { font-weight: 700; }
.hv-versus.layers { font-size: .82rem; gap: .4rem .8rem;
  grid-template-columns: fit-content(14rem) minmax(4rem, 1fr) auto; }
.hv-key { display: flex; gap: .3rem 1.1rem; flex-wrap: wrap; font-size: .8rem; opacity: .8; margin: .1rem 0 .7rem; }
.hv-key i { display: inline-block; width: 1.1rem; height: .38rem; border-radius: 99px; margin-right: .4rem;
  vertical-align: .1em; }
.hv-key .was { background: color-mix(in srgb, currentColor 34%, transparent); }
.hv-key .is { background: #3b73b9; } .hv-dark .hv-key .is { background: #6ea8ec; }
@media (max-width: 640px) {
  .hv-versus, .hv-versus.layers { grid-template-columns: fit-content(7rem) minmax(3rem, 1fr) auto; }
  .hv-versus .delta { display: none; }
}
</style>
"""

_CSS = """
<style>
.hv-head { font-weight: 600; font-size: 1.05rem; margin-bottom: .45rem; }
.hv-scroll { max-height: 25rem; overflow: auto; }
.hv-wide { overflow-x: auto; } .hv-wide img { display: block; max-width: none; }
.hv-mosaic .changed { outline: 2px solid #d9480f; outline-offset: -2px; z-index: 1; }
.hv-dark .hv-mosaic .changed { outline-color: #ff9457; }
.hv-single { margin: 0; } .hv-single img { display: block; width: 100%; max-width: 17rem; image-rendering: pixelated; }
.hv-rowtitle { font-size: .82rem; opacity: .72; margin: .15rem 0 .25rem; }
.hv-line { display: grid; grid-template-columns: 2.6rem 8.3rem minmax(8rem, 1.3fr) minmax(7rem, 1fr) 4.2rem;
  gap: 0 .7rem;
  font-size: .82rem; line-height: 1.75; font-variant-numeric: tabular-nums; align-items: center; min-width: 35rem;
  padding: 0 .5rem; border-left: 3px solid transparent; }
.hv-line.head { opacity: .62; } .hv-line .right { text-align: right; }
.hv-line .layer { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.hv-line .tag i { display: inline-block; width: .6rem; height: .6rem; border-radius: 2px; margin-right: .45rem; }
.hv-line.yours { border-left-color: #d9480f; background: color-mix(in srgb, #d9480f 11%, transparent);
  font-weight: 600; }
.hv-dark .hv-line.yours { border-left-color: #ff9457; background: color-mix(in srgb, #ff9457 14%, transparent); }
.hv-line.gap { opacity: .55; }
.forward_pre i { background: #9fc1e8; } .forward i { background: #3b73b9; }
.backward_pre i { background: #e8b9a0; } .backward i { background: #b4562d; }
.hv-facts { display: grid; grid-template-columns: auto 1fr; gap: .3rem 1rem; font-size: .86rem; align-items: baseline; }
.hv-facts .what { opacity: .62; } .hv-facts .value { overflow-wrap: anywhere; }
.hv-facts pre { margin: 0; white-space: pre-wrap; font-size: .82rem; background: none; padding: 0; }
.hv-table { width: 100%; border-collapse: collapse; font-size: .86rem; }
.hv-table th { text-align: left; font-weight: 600; opacity: .7; padding: .25rem .9rem .25rem 0; }
.hv-table td { padding: .3rem .9rem .3rem 0; border-top: 1px solid color-mix(in srgb, currentColor 13%, transparent);
  vertical-align: top; overflow-wrap: anywhere; }
.hv-table-place { overflow-x: auto; } .hv-table-place .hv-table { min-width: 36rem; }
@media (max-width: 640px) {
  .hv-facts { grid-template-columns: 1fr; gap: .1rem; } .hv-facts .value { margin-bottom: .45rem; }
}
</style>
"""


def apply_hooks_style() -> None:
    """Put the style sheet on the page."""
    apply_versus_style()
    st.html(_CSS)


def apply_versus_style() -> None:
    """Put that of pairs of bars on the page."""
    st.html(_VERSUS)
