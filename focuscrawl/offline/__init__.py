"""Tasks after a crawl: training an apprentice, choosing d_max, exporting knowledge.

The modules of this package read the store and the pages of a finished crawl. `focuscrawl.crawl`
runs a crawl; `focuscrawl.report` reports on a crawl.
"""
