"""What is done after a crawl: training an apprentice, choosing d_max, exporting knowledge.

Everything here reads a store that nobody writes to any more, and the pages where they came from.
What a crawl does while it runs is in `focuscrawl.crawl`, reports are in `focuscrawl.report`.
"""
