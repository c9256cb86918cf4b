"""What a crawl achieved: measures, summaries, figures, pages; and why it fetched what it fetched.

Here: everything that reads a finished or a running crawl's store to show it to a person or to a
notebook. Not here: anything that writes to the store. `Summary` needs no pandas and no
matplotlib, so that the end of a crawl can be told at once; the measures for notebooks are in
`focuscrawl.report.measures`, the curves in `focuscrawl.report.figures`.
"""

from focuscrawl.report.summary import Summary

__all__ = ["Summary"]
