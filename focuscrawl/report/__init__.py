"""What a crawl achieved: measures, summaries, figures, pages; and why it fetched what it fetched.

Here: everything that reads a finished or a running crawl's store to show it to a person or to a
notebook. Not here: anything that writes to the store.

- `summary` (with `outcome`, `stop_reasons`, `traps`, `revisits`, `harvest_falls`): the end of a
  crawl; needs no pandas and no matplotlib, so that it can be told at once
- `measures`, `figures`, `learning_curves`, `comparison`: for notebooks and ``focuscrawl report``,
  whose page is made by `html`
- `why`, `link_reasons`: one URL; `prestige`: hubs and authorities; `goals`: what a forage found
- `status`: how a crawl is doing at this moment
- `stores`, `url_lookup`: what a user names; `plain_text`, `prestige_text`, `templates`,
  `figure_style`: how it is shown
"""
