"""The page's looks: the palette of hookviz's own page, light and dark, and paper."""

from __future__ import annotations

from dataclasses import asdict

from hookviz.views.theme import Theme, theme_colours


def _variables(theme: Theme) -> str:
    return " ".join(f"--{part}: {colour};" for part, colour in asdict(theme).items())


_LIGHT, _DARK = _variables(theme_colours("light")), _variables(theme_colours("dark"))

PAGE_STYLE = (
    f"""
:root {{ {_LIGHT}
  --primary: #3b73b9; --soft: #f4f6fa; --edge: #e2e8f0;
  --bad: #b3261e; --bad-soft: #fbe9e7; --warn: #8a5a00; --warn-soft: #fdf1d8;
  --info: #2f5f9e; --info-soft: #e8f0fa; --good: #17713a; --good-soft: #e2f5e9; }}
@media screen and (prefers-color-scheme: dark) {{ :root {{ {_DARK}
  --primary: #6ea8ec; --soft: #181d27; --edge: #2a3242;
  --bad: #ff9a91; --bad-soft: #3a1d1f; --warn: #ffca5c; --warn-soft: #372a12;
  --info: #9cc4f5; --info-soft: #17263c; --good: #6ee09a; --good-soft: #12301f; }} }}
"""
    + """
* { box-sizing: border-box; }
html { scroll-behavior: smooth; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--background); color: var(--ink);
  font: 400 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1160px; margin: 0 auto; padding: 2.5rem 1.5rem 4rem; }
h1 { margin: .1rem 0 .8rem; font-size: 1.75rem; line-height: 1.25; letter-spacing: -.015em; overflow-wrap: anywhere; }
h2 { margin: 0 0 .75rem; font-size: 1.25rem; letter-spacing: -.01em; line-height: 1.3; }
h3 { margin: 1.5rem 0 .6rem; font-size: 1rem; }
p { margin: 0 0 .5rem; }
section { margin-top: 2.75rem; }
code { font: .92em/1.4 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  overflow-wrap: anywhere; }
a { color: var(--primary); text-decoration: none; }
a:hover { text-decoration: underline; }
a:focus-visible, .scroll:focus-visible { outline: 2px solid var(--primary); outline-offset: 2px; }
.quiet { color: var(--quiet); }
.lead { max-width: 46rem; color: var(--quiet); margin-bottom: 1rem; }
.brand { margin: 0; font-weight: 700; letter-spacing: -.01em; color: var(--primary); }
.badges { display: flex; flex-wrap: wrap; gap: .5rem; margin-bottom: .7rem; }
.badge { display: inline-block; padding: .08rem .65rem; border-radius: 99px; font-size: .82rem; font-weight: 600; }
.badge.error { color: var(--bad); background: var(--bad-soft); }
.badge.warning { color: var(--warn); background: var(--warn-soft); }
.badge.note { color: var(--info); background: var(--info-soft); }
.badge.good, .panel.good { color: var(--good); background: var(--good-soft); }
.panel { padding: .8rem 1rem; border-radius: .5rem; background: var(--soft); }
.panel.warning { color: var(--warn); background: var(--warn-soft); }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1.25rem; margin-top: 1.25rem; padding: .6rem 0;
  border: solid var(--edge); border-width: 1px 0; font-size: .92rem; }
.finding { margin: 0 0 .8rem; padding: .9rem 1.1rem; border-radius: .5rem; background: var(--soft);
  border-left: 4px solid #6f9bd1; }
.finding.error { border-color: #d5483c; } .finding.warning { border-color: #dfa21c; }
.finding p { max-width: 52rem; overflow-wrap: anywhere; }
.finding .head { display: flex; align-items: baseline; gap: .6rem; margin-bottom: .45rem; font-size: .88rem; }
.finding .what { font-weight: 600; }
.facts { display: flex; flex-wrap: wrap; gap: .15rem 1.5rem; margin: .6rem 0 0; padding: 0; list-style: none;
  font-size: .88rem; font-variant-numeric: tabular-nums; }
.facts:empty { display: none; }
.facts li { overflow-wrap: anywhere; min-width: 0; } .facts a { margin-right: .35rem; }
.trials { display: grid; grid-template-columns: repeat(auto-fill, minmax(196px, 1fr)); gap: .9rem; }
.trial { padding: .75rem; border: 1px solid var(--edge); border-radius: .5rem; min-width: 0; }
.trial.right { border-color: var(--good); box-shadow: inset 0 0 0 1px var(--good); }
.trial .seen { height: 128px; margin-bottom: .6rem; }
.trial .seen img { display: block; max-width: 100%; height: 100%; width: auto; object-fit: contain;
  border-radius: .25rem; image-rendering: pixelated; }
.trial .answer { font-weight: 600; }
.trial .title { font-weight: 600; font-size: .92rem; line-height: 1.35; margin-bottom: .4rem; }
.tick { color: var(--good); }
.trial dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem .4rem; margin: 0; font-size: .72rem; }
.trial dd { margin: 0; text-align: right; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
dt { color: var(--quiet); }
.known { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.25rem; margin: 0; font-size: .88rem; }
.known dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
figure { margin: 0 0 1rem; }
.drawing { display: block; width: 100%; min-width: 640px; max-width: 900px; height: auto;
  stroke-linejoin: round; stroke-linecap: butt; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 1rem; max-width: 900px;
  margin-top: 1.25rem; }
.pair figure { min-width: 0; } .pair .drawing { min-width: 0; max-width: 460px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .84rem; line-height: 1.45; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--quiet); white-space: nowrap; vertical-align: bottom;
  border-bottom: 1px solid var(--line); }
th, td { padding: .26rem .8rem .26rem 0; vertical-align: baseline; }
td { border-bottom: 1px solid var(--edge); }
th:last-child, td:last-child { padding-right: .2rem; }
.number { text-align: right; white-space: nowrap; }
.nil { color: var(--quiet); opacity: .6; }
.off { color: var(--warn); font-weight: 600; }
.layers { width: 100%; min-width: 960px; font-size: .78rem; margin-top: 1.25rem; }
.layers th, .layers td { padding-right: .62rem; }
.layers td:nth-child(-n+5) { white-space: nowrap; } .layers code { overflow-wrap: normal; }
.layers tr:target td, .layers tr:target { background: var(--info-soft); }
.layers .dot.error { color: var(--bad); } .layers .dot.warning { color: var(--warn); }
.layers tr { scroll-margin-top: 2rem; }
footer { margin-top: 3rem; padding-top: .8rem; border-top: 1px solid var(--edge); font-size: .85rem; }
@media (max-width: 640px) {
  main { padding: 1.5rem 1rem 3rem; } h1 { font-size: 1.4rem; }
  .trials { grid-template-columns: minmax(0, 1fr); gap: .6rem; }
  .trial { display: grid; grid-template-columns: 96px minmax(0, 1fr); column-gap: .9rem; align-content: start; }
  .trial .seen { height: 96px; grid-row: 1 / span 2; } .trial dl { font-size: .8rem; }
  .layers td:nth-child(2), .layers th:nth-child(2) { position: sticky; left: 0; min-width: 8.5rem; max-width: 9.5rem;
    background: var(--background); white-space: normal; } .layers code { overflow-wrap: anywhere; }
  .known { grid-template-columns: minmax(0, 9rem) minmax(0, 1fr); }
}
@page { size: A4; margin: 14mm 13mm; }
@media print {
  html, body { font-size: 12.5px; } main { max-width: none; padding: 0; } nav { display: none; }
  section { margin-top: 7mm; } h1 { font-size: 17pt; } h2 { font-size: 13pt; } h3 { font-size: 10.5pt; }
  h2, h3, .lead { break-after: avoid; } .lead { break-inside: avoid; max-width: none; }
  .finding, .trial, figure, tr, .panel, .known { break-inside: avoid; }
  .scroll { overflow: visible; } thead { display: table-header-group; }
  .drawing { min-width: 0; max-width: 100%; max-height: 222mm; }
  a { color: inherit; } .badge, .finding, .panel { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .trials { grid-template-columns: repeat(4, 1fr); gap: 2.5mm; } .trial { padding: 2mm; }
  .trial dl { font-size: 6.3pt; gap: .1rem .3rem; } .trial .seen { height: 26mm; }
  table { font-size: 7.5pt; width: 100%; } td { overflow-wrap: anywhere; }
  .layers { font-size: 6pt; min-width: 0; } .layers th, .layers td { padding: .16rem .3rem .16rem 0; }
  .layers .number { padding: .16rem 0 .16rem .34rem; }
  .layers :is(th, td):is(:first-child, :nth-child(4)) { padding-right: .45rem; }
  .layers td:nth-child(-n+5) { white-space: normal; } .layers code { overflow-wrap: anywhere; }
}
"""
)
