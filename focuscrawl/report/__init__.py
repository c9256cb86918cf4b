"""Reports on crawls for people and notebooks, from the store of a crawl, which stays unchanged.

- `summary`, `outcomes` and `status` read numbers and state of a crawl without pandas and
  matplotlib, which are slow to import.
- `measures`, `figures`, `comparison` and `html_report` are for notebooks and ``focuscrawl
  report``.
- `crawl_plan` checks start pages and estimates costs before a crawl, for ``focuscrawl plan``.
- `why` and `url_lookup` describe one URL, and `url_tables` lists URLs. `prestige` finds hubs and
  authorities, and `goals` finds the goal pages of ``focuscrawl paths forage``.
- `plain_text` and `templates` format text and HTML.
"""
