"""What is taken home of a crawl: its pages on the topic, with their text, each once.

Here: which pages, near-duplicates, boilerplate, files of several kinds, the datasheet. Not here:
how text is extracted (`focuscrawl.text`).
"""

from focuscrawl.collection.collection import Collection, ExportOptions, collect
from focuscrawl.collection.export_files import write_collection

__all__ = ["Collection", "ExportOptions", "collect", "write_collection"]
