"""How many of the relevant pages in reach a crawl has, and when that is enough.

Here: the estimate, from what came of the fetches and what waits; its record beside a crawl; the
rules by which a crawl ends itself. Not here: who asks when (`focuscrawl.crawl.stopping`)
and who is told. What the estimates are worth is measured in ``docs/stopping.md``.
"""
