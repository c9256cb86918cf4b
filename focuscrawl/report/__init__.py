"""Reports on crawls for people and notebooks; reads the store of a crawl and never writes to it.

- `summary`, `outcomes`, `status`: numbers and state of a crawl; without pandas and matplotlib,
  which are slow to import
- `measures`, `figures`, `comparison`, `html_report`: for notebooks and ``focuscrawl report``
- `crawl_plan`: start pages and costs before a crawl, for ``focuscrawl plan``
- `why`, `url_lookup`: one URL; `url_tables`: tables of URLs; `prestige`: hubs and authorities;
  `goals`: goal pages of a forage
- `plain_text`, `templates`: formatting of text and HTML
"""
