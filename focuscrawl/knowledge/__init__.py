"""Knowledge of a topic from earlier crawls, in one portable file per topic (methods.md 8).

A knowledge file contains seeds, keywords, predictions for URLs, and the value of fetching pages
again. The module `focuscrawl.offline.knowledge_export` reads the store of a crawl for `add_crawl`,
and `focuscrawl.strategies` uses the knowledge.
"""

from focuscrawl.knowledge.keywords import Keywords
from focuscrawl.knowledge.knowledge import Knowledge, read_trained_apprentice
from focuscrawl.knowledge.knowledge_file import CrawlRecord, FetchRecord, UpdateCounts
from focuscrawl.knowledge.update import AlreadyLearnedError, add_crawl

__all__ = [
    "AlreadyLearnedError",
    "CrawlRecord",
    "FetchRecord",
    "Keywords",
    "Knowledge",
    "UpdateCounts",
    "add_crawl",
    "read_trained_apprentice",
]
