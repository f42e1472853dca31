"""A report as one HTML page: nothing is loaded from elsewhere, and nothing in it runs."""

from __future__ import annotations

import base64
from html import escape
from importlib.util import find_spec

from pyg_sparse.cli.report import Report, Section

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #222; max-width: 1200px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.1em; margin-top: 2em; }
pre { background: #f5f6f8; padding: .8em; overflow-x: auto; white-space: pre-wrap; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th { text-align: left; border-bottom: 2px solid #888; }
td { border-bottom: 1px solid #ddd; white-space: pre; }
th, td { padding: .2em .8em .2em 0; }
.number { text-align: right; }
img { max-width: 100%; }
"""


def page(report: Report) -> str:
    title = escape(f"pyg_sparse {report.title}")
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>",
        _picture(report),
        *map(_section, report.sections),
        "</body>\n</html>\n",
    ]
    return "\n".join(parts)


def _picture(report: Report) -> str:
    if find_spec("matplotlib") is None:
        return "<p>The picture needs matplotlib: pip install 'pyg_sparse[plots]'.</p>"
    from pyg_sparse.cli.picture import png

    data = base64.b64encode(png(report.drawing)).decode()
    alt = "Degree distribution; the chosen format's entries; predicted and measured times"
    return f'<p><img alt="{alt}" src="data:image/png;base64,{data}"></p>'


def _section(section: Section) -> str:
    parts = [f"<h2>{escape(section.title)}</h2>"]
    if section.lines:
        parts.append("<pre>" + escape("\n".join(section.lines)) + "</pre>")
    if section.rows:
        header, *rows = ([_cell(cell, i in section.right) for i, cell in enumerate(row)] for row in section.rows)
        parts.append("<table>\n<thead>" + _row("th", header) + "</thead>\n<tbody>")
        parts += [_row("td", row) for row in rows]
        parts.append("</tbody>\n</table>")
    return "\n".join(parts)


def _cell(text: str, number: bool) -> tuple[str, str]:
    return (' class="number"' if number else ""), escape(text)


def _row(tag: str, cells: list[tuple[str, str]]) -> str:
    return "<tr>" + "".join(f"<{tag}{attributes}>{text}</{tag}>" for attributes, text in cells) + "</tr>"
