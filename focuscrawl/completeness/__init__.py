"""How many of the relevant pages in reach a crawl has, and when that is enough.

The estimate, from the outcomes of the fetches and what waits; its record beside a crawl; the rules
by which a crawl stops itself, which `focuscrawl.crawl.stopping` applies. How good the estimates
are is measured in ``docs/research/stopping-studies.md``.
"""
