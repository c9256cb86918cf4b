"""Webs that need no network: recorded in WARC files, or generated.

Here: the index over a recording, replay, recording, the synthetic web. Not here: the Scrapy
download handler that serves them, which is `focuscrawl.downloadhandlers`.
"""
