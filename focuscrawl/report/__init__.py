"""Creates reports, for people and notebooks, from the store of a crawl without changing it.

- The modules `summary`, `outcomes` and `status` read the numbers and the state of a crawl without
  pandas and matplotlib, which are slow to import.
- The modules `measures`, `figures`, `comparison` and `html_report` are for notebooks and for
  ``focuscrawl report``.
- The module `crawl_plan` checks start pages and estimates costs before a crawl, for ``focuscrawl
  plan``.
- The modules `why` and `url_lookup` describe one URL, and `url_tables` lists URLs. The module
  `prestige` finds hubs and authorities, and `goals` finds the goal pages of ``focuscrawl paths
  forage``.
- The module `audit` judges the pages of a recording, for ``focuscrawl audit``.
- The modules `plain_text` and `templates` format text and HTML.
"""
