"""The laboratory: strategies compared on recorded webs, on the same engine as a live crawl.

Here: studies (webs x topics x draws of seeds x strategies), what a web holds within reach of its
seeds, running a study's crawls in processes, and the tables that come of it. Not here: how one
crawl is shown, which is `focuscrawl.report`.
"""
