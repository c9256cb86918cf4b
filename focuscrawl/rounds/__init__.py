"""A crawl in rounds over tables of Parquet, as Nutch crawls, with an apprentice.

A round chooses the best links known, fetches them, learns, and takes in what they link to. Hosts
are spread over buckets; what a round does to a bucket is a task, which reads and writes whole
files and can be done anywhere, and again if it was lost. Here: the tables, the tasks, the order of
a round. Not here: what a page, a link and a model are, which is `focuscrawl.crawl` and below.
"""

from focuscrawl.rounds.driver import RoundsPlan, crawl_in_rounds, read_plan

__all__ = ["RoundsPlan", "crawl_in_rounds", "read_plan"]
