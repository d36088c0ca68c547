"""The look of the page, in light and dark, on a telephone and on a desk."""

CSS = """
:root { color-scheme: light dark; --back: #fff; --ink: #1c1e21; --muted: #62676e; --line: #d9dce0;
  --band: #f3f5f7; --link: #0b5a8f; --good: #17693a; --bad: #a8201a; }
@media (prefers-color-scheme: dark) { :root { --back: #15171a; --ink: #e6e8ea; --muted: #9aa1a9;
  --line: #363b41; --band: #1e2125; --link: #7db8e8; --good: #7ccf9b; --bad: #ff9087; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink);
  font: 16px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 84rem; margin: 0 auto; padding: 1rem 1rem 3rem; }
a { color: var(--link); }
h1 { font-size: 1.6rem; line-height: 1.2; margin: .5rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; padding-bottom: .2rem;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
h3 { font-size: 1rem; margin: 1.4rem 0 .3rem; }
p, li { max-width: 46rem; overflow-wrap: anywhere; } ul { padding-left: 1.2rem; }
li, figcaption, .quiet { font-size: .85rem; color: var(--muted); }
nav { font-size: .9rem; line-height: 1.9; margin: .8rem 0; }
nav a { margin-right: 1rem; white-space: nowrap; }
.state { padding: .5rem .8rem; background: var(--band); border-left: 4px solid #0072B2; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .5rem; text-align: right; vertical-align: baseline; }
th { font-weight: 600; border-bottom: 1px solid var(--line); vertical-align: bottom; }
th.group { text-align: center; border-left: 1.2rem solid var(--back); }
.name { text-align: left; overflow-wrap: break-word; }
.results th:first-child, .results td:first-child, .fixed td:first-child,
.fixed th:first-child { position: sticky; left: 0; background: var(--back); }
.results tbody .name + .name { min-width: 7.5rem; }
tr.ours > td { border-top: 1px solid var(--line); font-weight: 600; }
.results th, .results td { white-space: nowrap; }
.results td.name + .name, .results td.long { white-space: normal; }
.fixed td:not(.long), .fixed th { white-space: nowrap; }
td.long { min-width: 10rem; max-width: 24rem; overflow-wrap: anywhere; }
.results td.message { text-align: left; font-weight: 400; color: var(--muted); }
.results td.message.bad { color: var(--bad); }
.results sub { display: inline-block; min-width: 1.9em; text-align: left; font-size: .75em; }
tr.ours sub { font-weight: 400; color: var(--muted); }
tr.paper > td { color: var(--muted); }
.best { text-decoration: underline; text-decoration-thickness: 2px; text-underline-offset: 3px; }
.claims td { text-align: left; vertical-align: top; min-width: 5rem; }
.claims td:nth-child(3) { min-width: 16rem; } .claims td:nth-child(4) { min-width: 14rem; }
.claims td:nth-child(2) { white-space: nowrap; } .claims small { color: var(--muted); }
.claims th { text-align: left; } .claims tr > td { border-top: 1px solid var(--line); }
.held { color: var(--good); font-weight: 600; } .not-held { color: var(--bad); font-weight: 600; }
.not-run, .undecided { color: var(--muted); }
@media (max-width: 40rem) { .claims thead { display: none; }
  .claims tbody, .claims tr, .claims td { display: block; }
  .claims tr { padding: .5rem 0; border-top: 1px solid var(--line); }
  .claims tr > td { padding: .1rem 0; border-top: 0; } }
code { font-size: .8rem; overflow-wrap: anywhere; }
.figures { display: grid; gap: 1rem; align-items: start;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 23rem), 1fr)); }
figure { margin: 0; padding: .6rem; background: #fff; border: 1px solid var(--line);
  border-radius: 6px; min-width: 0; }
figure img { display: block; width: 100%; max-width: 34rem; height: auto; margin: 0 auto; }
figure.wide { grid-column: 1 / -1; }
figure.wide img { min-width: 38rem; max-width: 60rem; }
figcaption { color: #555; margin-top: .3rem; overflow-wrap: anywhere; }
figcaption a { color: #0b5a8f; }
summary { cursor: pointer; margin: .8rem 0; }
"""
