"""What a crawl achieved: measures, summaries, figures, pages; and why it fetched what it fetched.

Here: everything that reads a finished or a running crawl's store to show it to a person or to a
notebook. Not here: anything that writes to the store. `focuscrawl.report.summary`
needs no pandas and no matplotlib, so that the end of a crawl can be told at once and without the
extra `report`; the measures for notebooks are in `focuscrawl.report.measures`, the curves in
`focuscrawl.report.figures`.
"""
