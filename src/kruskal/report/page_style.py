"""The style sheet of the report, for light and for dark screens."""

STYLE = """\
:root { --ink: #24292f; --quiet: #6e7781; --line: #d8dde3;
  --paper: #ffffff; --card: #f6f8fa; --accent: #2f6690; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --quiet: #9aa4ae; --line: #343b43;
    --paper: #14181d; --card: #1d232a; --accent: #8fb8d8; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 2.5rem 1.25rem 3rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 1.5rem; }
h2 { font-size: 1.1rem; margin: 2.5rem 0 .75rem; }
.headline { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr));
  gap: .75rem; margin: 0; }
.headline div, pre { background: var(--card); border: 1px solid var(--line); border-radius: .5rem;
  padding: .75rem 1rem; }
dt { color: var(--quiet); font-size: .8rem; }
dd { margin: 0; font-size: 1.5rem; font-weight: 600; color: var(--accent);
  font-variant-numeric: tabular-nums; }
dd small { font-size: .8rem; font-weight: 400; color: var(--quiet); }
table { border-collapse: collapse; font-size: .9rem; }
th, td { text-align: left; padding: .3rem 1.5rem .3rem 0; border-bottom: 1px solid var(--line); }
th { font-weight: 400; color: var(--quiet); }
.numbers td, .numbers thead th { text-align: right; font-variant-numeric: tabular-nums; }
figure { margin: 2.5rem 0 0; }
figure img { display: block; max-width: 100%; height: auto; background: #ffffff;
  border: 1px solid var(--line); border-radius: .5rem; }
figcaption { color: var(--quiet); font-size: .9rem; max-width: 48rem; margin-top: .6rem; }
pre { overflow-x: auto; font-size: .85rem; }
footer { margin-top: 3rem; color: var(--quiet); font-size: .8rem; }
"""
