"""Tasks after a crawl: training an apprentice, choosing `d_max`, and exporting knowledge.

The modules of the package `offline` read the store and the pages of a finished crawl. The package
`focuscrawl.crawl` runs a crawl, and the package `focuscrawl.report` reports on a crawl.
"""
