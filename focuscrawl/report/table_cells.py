"""Tables with texts of strangers, made fit for a spreadsheet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from focuscrawl.report.plain_text import cell

if TYPE_CHECKING:
    import pandas as pd


def cells(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose texts are no formulas, see `focuscrawl.report.plain_text.cell`."""
    texts = [str(name) for name in table if table[name].dtype == object]
    safe = table[texts].map(lambda value: cell(value) if isinstance(value, str) else value)
    return table.assign(**{name: safe[name] for name in texts})
