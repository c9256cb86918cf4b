"""What callbacks of other people's spiders yield, on its way to the crawl.

Here: which requests a page's callback has made. Not here: what becomes of them, which is in
`focuscrawl.engine.open_pages`.
"""
