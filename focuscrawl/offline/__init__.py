"""Tasks after a crawl, such as training an apprentice and exporting knowledge.

The modules of the package `offline` read the store and the pages of a finished crawl. The package
`focuscrawl.crawl` runs a crawl, and the package `focuscrawl.report` reports on a crawl.
"""
