"""Webs that need no network: recorded in WARC files, or generated.

Here: the index over a recording, replay, recording, the synthetic web. Not here: the Scrapy
download handler that serves them, which is `focuscrawl.downloadhandlers`.
"""

from focuscrawl.webs.by_name import open_web
from focuscrawl.webs.pages import read_page
from focuscrawl.webs.protocol import Answer, Web
from focuscrawl.webs.recorded_web import RecordedWeb
from focuscrawl.webs.warc_recorder import WarcRecorder

__all__ = ["Answer", "RecordedWeb", "WarcRecorder", "Web", "open_web", "read_page"]
