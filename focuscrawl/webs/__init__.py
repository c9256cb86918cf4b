"""Webs that need no network: recorded in WARC files, or generated.

Here: the index over a recording, replay, recording, the synthetic web. Not here: the Scrapy
download handler that serves them, which is `focuscrawl.downloadhandlers.replay`.
"""

from focuscrawl.webs.opening import open_web
from focuscrawl.webs.recorded_web import RecordedWeb
from focuscrawl.webs.warc_recorder import WarcRecorder
from focuscrawl.webs.web_protocol import Answer, Web, read_page

__all__ = ["Answer", "RecordedWeb", "WarcRecorder", "Web", "open_web", "read_page"]
