"""The lab: studies that compare strategies on recordings of the Web with the live crawl engine.

The package reads study files, runs each crawl in a child process, and computes tables and figures.
`focuscrawl.report` shows single crawls.
"""
