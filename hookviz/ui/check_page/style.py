"""The looks of the Check page, beyond those of all pages."""

from __future__ import annotations

import streamlit as st

_CSS = """
<style>
.hv-head { font-weight: 600; font-size: 1.05rem; margin-bottom: .45rem; }
.hv-verdict { display: flex; gap: .7rem; align-items: flex-start; }
.hv-verdict .words { font-size: 1.3rem; font-weight: 650; line-height: 1.3; letter-spacing: -.01em;
  overflow-wrap: anywhere; text-wrap: balance; }
.hv-verdict .about { margin-top: .2rem; }
.hv-mark { flex: none; display: inline-grid; place-items: center; width: 1.15rem; height: 1.15rem; border-radius: 50%;
  font-size: .78rem; font-weight: 700; line-height: 1; color: #fff; }
.hv-verdict .hv-mark { width: 1.75rem; height: 1.75rem; font-size: 1.1rem; }
.hv-mark.error { background: #c4342b; } .hv-mark.warning { background: #a96b00; } .hv-mark.note { background: #5c6b80; }
.hv-mark.good { background: #1d8548; }
.hv-finding { display: grid; grid-template-columns: 1.15rem minmax(0, 1fr); gap: .3rem .7rem; line-height: 1.45; }
.hv-finding .rest { display: grid; gap: .3rem; font-size: .92rem; overflow-wrap: anywhere; }
.hv-finding .kind { font-size: .78rem; line-height: 1.15rem; opacity: .72; }
.hv-finding .kind b { font-weight: 650; }
.hv-finding .what { font-weight: 600; font-size: .98rem; }
.hv-finding .label { font-weight: 600; }
.hv-finding .size { font-size: .78rem; opacity: .66; font-variant-numeric: tabular-nums; }
.hv-finding details { font-size: .82rem; } .hv-finding summary { cursor: pointer; opacity: .72; }
.hv-finding code, .hv-verdict code { font-size: .9em; padding: .05em .3em; border-radius: 4px; color: inherit;
  background: color-mix(in srgb, currentColor 9%, transparent); overflow-wrap: anywhere; }
[class*="st-key-explore-"] a { justify-content: center; min-height: 2.5rem; border-radius: .5rem;
  border: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
.hv-trials { display: grid; grid-template-columns: repeat(auto-fill, minmax(8.4rem, 1fr)); gap: .9rem; }
.hv-trial { margin: 0; font-size: .84rem; line-height: 1.4; min-width: 0; }
.hv-trial .picture { aspect-ratio: 1; border-radius: 8px; overflow: hidden; margin-bottom: .4rem; display: grid;
  place-items: center; background: color-mix(in srgb, currentColor 6%, transparent);
  outline: 1px solid color-mix(in srgb, currentColor 16%, transparent); outline-offset: -1px; }
.hv-trial .picture img { width: 100%; height: 100%; object-fit: contain; image-rendering: pixelated; }
.hv-trial.right .picture { outline: 3px solid #1d8548; outline-offset: 2px; }
.hv-dark .hv-trial.right .picture { outline-color: #3fb872; }
.hv-trial .way { font-weight: 600; } .hv-trial .class { overflow-wrap: anywhere; }
.hv-trial .numbers { opacity: .7; font-variant-numeric: tabular-nums; }
.hv-ridge { max-height: 29rem; overflow: auto; } .hv-ridge img { display: block; width: 100%; max-width: 760px; }
.hv-likeness { display: grid; grid-template-columns: fit-content(13rem) minmax(4rem, 1fr) 2.6rem; gap: .2rem .8rem;
  align-items: center; font-size: .8rem; font-variant-numeric: tabular-nums; max-height: 27rem; overflow: auto; }
.hv-likeness .name { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.hv-likeness .track { height: .5rem; border-radius: 99px; background: color-mix(in srgb, currentColor 9%, transparent);
} .hv-likeness .bar { height: 100%; border-radius: 99px; background: #3b73b9; }
.hv-dark .hv-likeness .bar { background: #6ea8ec; }
.hv-likeness .value { text-align: right; }
.hv-table { width: 100%; border-collapse: collapse; font-size: .86rem; }
.hv-table th { text-align: left; font-weight: 600; opacity: .7; padding: .25rem .9rem .25rem 0; }
.hv-table td { padding: .3rem .9rem .3rem 0; border-top: 1px solid color-mix(in srgb, currentColor 13%, transparent);
  vertical-align: top; overflow-wrap: anywhere; }
.st-key-report-files { justify-content: flex-end; }
.st-key-check-images button { min-height: 2.5rem; }
.st-key-check-status { min-height: 2.6rem; justify-content: center; }
[class*="st-key-threshold-"] { margin-bottom: -.55rem; }
@media (max-width: 640px) {
  .hv-trials { grid-template-columns: repeat(auto-fill, minmax(6.6rem, 1fr)); gap: .75rem; }
  .hv-ridge img { width: 640px; max-width: none; }
  .hv-unreadable td { display: block; padding-right: 0; } .hv-unreadable td + td { border: 0; padding-top: 0; }
  .hv-verdict .words { font-size: 1.12rem; } .st-key-report-files { justify-content: flex-start; }
}
</style>
"""


def apply_check_style() -> None:
    """Put the style sheet on the page."""
    st.html(_CSS)
