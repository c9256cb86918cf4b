"""What is done after a crawl: training an apprentice on it, choosing d_max, exporting knowledge.

Everything here reads a store that nobody writes to any more, and the pages where they came from.
Not here: what a crawl does while it runs (`focuscrawl.crawl`), and reports (`focuscrawl.report`).
"""
