"""The lab runs studies, which compare crawl strategies on recordings (saved web pages).

The package `lab` reads study files, runs each crawl in a child process, and computes tables and
figures. The package `focuscrawl.report` reports on single crawls.
"""
