#include "app/report/report.hpp"

namespace mylos::app {

// Contains no "<" and no "&", because it is embedded in XML without escaping.
const char* const report_style = R"(
:root {
  color-scheme: light dark;
  --back: #ffffff; --card: #f6f7f9; --text: #1a1f26; --quiet: #59626e; --rule: #d8dde3; --link: #005a9c;
  --good: #00714f; --bad: #b23c00; --mark: #ffe9a8; --other: #cfe3f5;
  --c0: #0072b2; --c1: #d55e00; --c2: #008a64; --c3: #a9488f; --c4: #8f6a00; --c5: #4b5563; --c6: #a5adb8;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #14171b; --card: #1c2026; --text: #e4e8ec; --quiet: #9ba6b2; --rule: #323a43; --link: #7cc0f5;
    --good: #4cd3a5; --bad: #f79a63; --mark: #5a4a12; --other: #1f4562;
    --c0: #56b4e9; --c1: #f0894a; --c2: #35c79f; --c3: #e08fc3; --c4: #e3c33c; --c5: #b4bdc7; --c6: #65707c;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; max-width: 72rem; padding: 1.5rem 1.25rem 4rem; background: var(--back); color: var(--text);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .75rem; padding-top: .75rem; border-top: 1px solid var(--rule); }
h3 { font-size: 1rem; margin: 1.5rem 0 .5rem; }
p { margin: .5rem 0; max-width: 46rem; }
a { color: var(--link); }
code { font: .9em ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; overflow-wrap: anywhere; }
.quiet, .note, figcaption span { color: var(--quiet); }
.note { font-size: .85rem; margin: .25rem 0; }
.missing { border-left: 4px solid var(--bad); background: var(--card); padding: .5rem 1rem; margin: 1rem 0; }
.missing ul { margin: .25rem 0; padding-left: 1.1rem; }
nav { margin: 1rem 0 0; font-size: .9rem; }
nav a { margin-right: 1rem; white-space: nowrap; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(7.6rem, 1fr)); gap: .75rem; margin: 1.25rem 0; padding: 0; }
.tiles div { background: var(--card); border: 1px solid var(--rule); border-radius: 6px; padding: .6rem .8rem; }
.tiles dt { color: var(--quiet); font-size: .8rem; }
.tiles dd { margin: 0; font-size: 1.35rem; line-height: 1.25; font-variant-numeric: tabular-nums; }
.tiles dd small { display: block; font-size: .75rem; color: var(--quiet); }
.charts { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1.5rem 2rem; }
figure { margin: 0; min-width: 0; max-width: 34rem; break-inside: avoid; }
figcaption { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 .6rem; font-size: .95rem; margin-bottom: .15rem; }
svg { display: block; }
svg.chart { width: 100%; height: auto; overflow: visible; }
svg.chart text { font: 12.5px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; fill: var(--text); }
svg.chart text.t { fill: var(--quiet); font-variant-numeric: tabular-nums; }
svg.chart .small { font-size: 75%; }
.grid { stroke: var(--rule); stroke-width: 1; fill: none; }
.axis { stroke: var(--quiet); stroke-width: 1; fill: none; }
.level { stroke: var(--quiet); stroke-width: 1; stroke-dasharray: 2 3; fill: none; }
.s path { fill: none; stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: butt; }
.s.faint path { stroke-width: 1; opacity: .4; }
.s.faint circle { opacity: .4; }
.s0 path { stroke: var(--c0); } .s1 path { stroke: var(--c1); } .s2 path { stroke: var(--c2); }
.s3 path { stroke: var(--c3); } .s4 path { stroke: var(--c4); } .s5 path { stroke: var(--c5); }
.s0 circle, .p0, .f0 { fill: var(--c0); } .s1 circle, .p1, .f1 { fill: var(--c1); }
.s2 circle, .p2, .f2 { fill: var(--c2); } .s3 circle, .p3, .f3 { fill: var(--c3); }
.s4 circle, .p4, .f4 { fill: var(--c4); } .s5 circle, .p5, .f5 { fill: var(--c5); } .f6 { fill: var(--c6); }
.d1 path { stroke-dasharray: 7 3; } .d2 path { stroke-dasharray: 2 2; } .d3 path { stroke-dasharray: 8 3 2 3; }
.h rect { fill: transparent; }
.h g { display: none; pointer-events: none; }
.h:hover g { display: inline; }
.guide { stroke: var(--quiet); stroke-width: 1; }
.h rect.box { fill: var(--back); stroke: var(--rule); }
svg.chart .h text { font-size: 12px; font-variant-numeric: tabular-nums; }
svg.bar { width: 100%; height: 1.6rem; border-radius: 4px; }
.bar rect { stroke: var(--back); stroke-width: 2; vector-effect: non-scaling-stroke; }
.bars { display: grid; grid-template-columns: minmax(4rem, max-content) minmax(0, 1fr); gap: .4rem .8rem; align-items: center; margin: .75rem 0; overflow-wrap: anywhere; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .1rem 1rem; margin: 0; padding: 0; font-size: .85rem; min-width: 0; }
.legend li { display: flex; align-items: center; gap: .4rem; min-width: 0; overflow-wrap: anywhere; }
.legend svg, svg.swatch { width: 24px; height: 8px; flex: none; }
svg.swatch { display: inline-block; margin-right: .4rem; vertical-align: middle; }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .45rem; vertical-align: -.05em; }
.key.f0 { background: var(--c0); } .key.f1 { background: var(--c1); } .key.f2 { background: var(--c2); }
.key.f3 { background: var(--c3); } .key.f4 { background: var(--c4); } .key.f5 { background: var(--c5); } .key.f6 { background: var(--c6); }
.scroll { overflow-x: auto; max-width: 100%; margin: .5rem 0; }
.scroll:focus-visible, summary:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--rule); }
thead th { color: var(--quiet); font-weight: 600; vertical-align: bottom; }
tbody th { font-weight: 500; overflow-wrap: break-word; }
tbody th:first-child { min-width: 6.5rem; max-width: 22rem; }
.whole { white-space: nowrap; }
td small { display: block; color: var(--quiet); }
th.n, td.n { text-align: right; }
td.n { white-space: nowrap; }
td:not(.n) { overflow-wrap: anywhere; min-width: 5.5rem; }
tbody td:last-child, thead th:last-child { padding-right: 0; }
details { margin: .35rem 0; }
summary { cursor: pointer; color: var(--quiet); font-size: .85rem; width: fit-content; }
.facts th { color: var(--quiet); white-space: nowrap; }
.facts td { overflow-wrap: anywhere; }
.answers { list-style: none; margin: 0; padding: 0; }
.answers li { padding: .7rem 0; border-bottom: 1px solid var(--rule); break-inside: avoid; }
.answers p { margin: .15rem 0; max-width: none; overflow-wrap: anywhere; }
.answers .q { font-weight: 600; }
.answers .context { color: var(--quiet); font-size: .92rem; }
.answers dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .05rem .8rem; margin: .25rem 0; }
.answers dt { color: var(--quiet); font-size: .85rem; padding-top: .1rem; }
.answers dd { margin: 0; overflow-wrap: anywhere; }
.pictures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(15rem, 100%), 1fr)); gap: .5rem 1.2rem; }
.pictures img { display: block; max-width: 14rem; max-height: 14rem; }
.pictures img.few { width: 7rem; height: 7rem; object-fit: contain; object-position: left; image-rendering: pixelated; }
mark { background: var(--mark); color: var(--text); padding: 0 .1em; border-radius: 2px; }
mark.p { background: var(--other); }
.better { color: var(--good); } .worse { color: var(--bad); }
@media screen and (max-width: 50rem) {
  body { padding: 1rem .8rem 3rem; }
  .charts { grid-template-columns: minmax(0, 1fr); }
}
@media screen and (max-width: 34rem) {
  svg.chart text { font-size: 15px; }
  .bars { grid-template-columns: minmax(0, 1fr); }
  table { font-size: .85rem; }
  th, td { padding-right: .6rem; }
  .scroll th:first-child { position: sticky; left: 0; background: var(--back); max-width: 9rem; }
  .facts th:first-child { position: static; }
}
@media print {
  :root {
    --back: #ffffff; --card: #ffffff; --text: #000000; --quiet: #444444; --rule: #bbbbbb; --link: #000000;
    --good: #00714f; --bad: #b23c00; --mark: #ffe9a8; --other: #cfe3f5;
    --c0: #0072b2; --c1: #d55e00; --c2: #008a64; --c3: #a9488f; --c4: #8f6a00; --c5: #4b5563; --c6: #a5adb8;
  }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav, summary, details:not([open]) { display: none; }
  h1 { font-size: 16pt; } h2 { font-size: 12pt; margin-top: 1.5rem; }
  .tiles dd { font-size: 12pt; }
  .charts { gap: 1rem 1.25rem; }
  svg.chart text { font-size: 14px; }
  table { font-size: 7.5pt; }
  th, td { padding: .15rem .4rem .15rem 0; }
  tbody th:first-child { min-width: 4rem; }
  td:not(.n) { min-width: 2.5rem; }
  tr { break-inside: avoid; }
  .scroll { overflow: visible; }
  h2, h3 { break-after: avoid; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
)";

}  // namespace mylos::app
