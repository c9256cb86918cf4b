"""Tasks after a crawl: training an apprentice, choosing d_max, exporting knowledge.

The modules read the store of a finished crawl and its pages. `focuscrawl.crawl` runs a crawl;
`focuscrawl.report` reports on a crawl.
"""
