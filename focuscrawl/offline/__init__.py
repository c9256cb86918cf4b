"""Tasks after a crawl: train an apprentice, choose the maximum DOM offset, export knowledge.

The modules of this package read the store and the pages of a finished crawl. `focuscrawl.crawl`
runs a crawl; `focuscrawl.report` reports on a crawl.
"""
