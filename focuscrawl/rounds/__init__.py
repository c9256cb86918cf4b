"""Runs crawls in rounds (batches of fetches) over Parquet tables, as Apache Nutch does.

A round selects the URLs with the best scores, fetches the URLs, trains the apprentice, and adds
the new links. Hosts are divided into buckets (groups of hosts). A task is one stage of a round for
one bucket. A task reads and writes whole files, so any worker can run or repeat a task. The
package `rounds` contains the tables and tasks of rounds. Pages and links are processed by
`focuscrawl.crawl` and the packages that it imports.
"""

from focuscrawl.rounds.driver import RoundsPlan, crawl_in_rounds, read_plan

__all__ = ["RoundsPlan", "crawl_in_rounds", "read_plan"]
