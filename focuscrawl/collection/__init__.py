"""Export of a crawl: choice of relevant pages, export files and the datasheet.

The package `focuscrawl.text` extracts the texts of the exported pages.
"""

from focuscrawl.collection.collection import Collection, ExportOptions, collect
from focuscrawl.collection.export_files import write_collection

__all__ = ["Collection", "ExportOptions", "collect", "write_collection"]
