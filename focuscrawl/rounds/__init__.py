"""Runs crawls in rounds over Parquet tables, as Apache Nutch does, with an apprentice.

A round selects the best known links, fetches them, trains the model, and adds the new links. Hosts
are divided into buckets (groups of hosts). A task is one stage of a round for one bucket. A task
reads and writes whole files, so any worker can run or repeat a task. This package contains the
tables, the tasks and the order of a round; `focuscrawl.crawl` and lower packages process pages and
links.
"""

from focuscrawl.rounds.driver import RoundsPlan, crawl_in_rounds, read_plan

__all__ = ["RoundsPlan", "crawl_in_rounds", "read_plan"]
