"""How the report looks."""

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; color: #1d2530;
  margin: 0; background: #f6f7f9; }
main { max-width: 1080px; margin: 0 auto; padding: 24px 20px 40px; }
h1 { font-size: 26px; margin: 0; }
h2 { font-size: 18px; margin: 0 0 10px; }
h3 { font-size: 15px; margin: 16px 0 6px; }
p { margin: 6px 0 10px; }
.dim, footer { color: #66707c; font-size: 13px; overflow-wrap: anywhere; }
footer { text-align: center; padding-bottom: 24px; }
section { background: #fff; border: 1px solid #e2e6ea; border-radius: 8px; padding: 16px 20px;
  margin-top: 18px; }
.tiles { display: flex; flex-wrap: wrap; gap: 10px; margin-top: 14px; }
.tiles div { background: #fff; border: 1px solid #e2e6ea; border-radius: 8px; padding: 8px 16px;
  color: #66707c; font-size: 13px; }
.tiles b { display: block; font-size: 20px; color: #1d2530; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; }
th { text-align: left; color: #66707c; font-weight: 600; border-bottom: 1px solid #cfd5db; }
th, td { padding: 4px 10px 4px 0; vertical-align: top; }
td { border-bottom: 1px solid #eef0f3; }
td.n { font-variant-numeric: tabular-nums; white-space: nowrap; }
tr.changed td { background: #fff4ea; font-weight: 600; }
figure { margin: 0; overflow-x: auto; }
figure svg { max-width: 100%; height: auto; }
.bar { display: inline-block; height: 12px; min-width: 1px; background: #9fa8b2;
  border-radius: 2px; }
td:has(.bar) { width: 32%; }
.bar.won { background: #d55e00; } .bar.finished { background: #0072b2; }
.bar.crash, .bar.memory { background: #b00020; } .bar.cutoff { background: #e69f00; }
details summary { cursor: pointer; color: #0060a0; }
"""
