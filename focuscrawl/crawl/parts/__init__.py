"""Parts of a crawl: learning, distilling, limits and what else takes part in the loop.

Each is a `focuscrawl.crawl.part.Part`, one file each; the loop (`focuscrawl.crawl.crawl`) calls
them without knowing which they are.
"""
