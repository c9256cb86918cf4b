"""What is done after a crawl: training an apprentice on it, choosing d_max, exporting knowledge.

- `training`: offline training of an apprentice on the links (u,v) of a crawl
- `d_max_selection`: d_max by cross-validation; with `cross_validation` (what is held out, and
  fits) and `d_max_features` (the features of links at every d_max)
- `knowledge_export`: a crawl as `focuscrawl.knowledge` learns it
- `link_graph`: the links between the pages of a crawl, for the distiller and for paths

Everything here reads a store that nobody writes to any more, and the pages where they came from.
Not here: what a crawl does while it runs (`focuscrawl.crawl`), and reports (`focuscrawl.report`).
"""
