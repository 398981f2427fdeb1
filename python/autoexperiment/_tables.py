"""Formats tables as HTML for notebooks. All texts are escaped."""

from __future__ import annotations

from html import escape
from typing import Any, Iterable, Sequence

__all__ = ["html_table"]


def html_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Returns a plain table, with numbers aligned to the right."""
    head = "".join(f"<th>{escape(str(cell))}</th>" for cell in header)
    body = []
    for row in rows:
        cells = []
        for cell in row:
            style = ' style="text-align:right"' if isinstance(cell, (int, float)) else ""
            cells.append(f"<td{style}>{escape(f'{cell:.3g}' if isinstance(cell, float) else str(cell))}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
