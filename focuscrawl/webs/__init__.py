"""Webs that need no network, which are recordings in WARC files, and generated webs.

The package `webs` contains the index of recordings, the replay and the recording of pages, and the
synthetic web. The Scrapy download handler that answers requests from such a web is in
`focuscrawl.downloadhandlers`.
"""

from focuscrawl.webs.opening import open_web
from focuscrawl.webs.recorded_web import RecordedWeb
from focuscrawl.webs.warc_recorder import WarcRecorder
from focuscrawl.webs.web_protocol import Answer, Web, read_page

__all__ = ["Answer", "RecordedWeb", "WarcRecorder", "Web", "open_web", "read_page"]
