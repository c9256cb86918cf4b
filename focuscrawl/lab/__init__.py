"""The lab: studies that compare strategies on recorded webs, with the engine of live crawls.

The package reads study files, runs each crawl in a child process, and computes tables and figures.
`focuscrawl.report` shows single crawls.
"""
