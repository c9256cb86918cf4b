"""What is known of a topic from crawl to crawl (methods 8): one portable file a topic.

Here: the file, what is looked up in it (seeds, keywords, predictions of URLs, when a page is worth
another visit), and how a finished crawl is taken in. Not here: reading a crawl's store
(`focuscrawl.offline.knowledge_export`), the strategies that ask (`focuscrawl.strategies`).
"""

from focuscrawl.knowledge.keywords import Keywords
from focuscrawl.knowledge.knowledge import Knowledge, read_trained_apprentice
from focuscrawl.knowledge.knowledge_file import CrawlRecord, FetchRecord, UpdateCounts
from focuscrawl.knowledge.update import AlreadyLearnedError, learn

__all__ = [
    "AlreadyLearnedError",
    "CrawlRecord",
    "FetchRecord",
    "Keywords",
    "Knowledge",
    "UpdateCounts",
    "learn",
    "read_trained_apprentice",
]
