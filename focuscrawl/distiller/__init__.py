"""Hubs and authorities of a crawl: relevance-weighted HITS over its links (METHODS 7, F99 3.2).

Here: arrays in, arrays out. Not here: reading links from a store (`focuscrawl.report.prestige`),
what a crawl does with hubs (`focuscrawl.crawl.parts.distilling`).
"""

from focuscrawl.distiller.aliases import stand_ins
from focuscrawl.distiller.distiller import Distiller, LinkGraph, Scores, best
from focuscrawl.distiller.sites import RULES, Sites

__all__ = ["RULES", "Distiller", "LinkGraph", "Scores", "Sites", "best", "stand_ins"]
