"""Judging pages of a crawl in the studio, and what that moves in its frontier.

Which pages are asked about is `focuscrawl.feedback`'s; how a crawl follows, too.
"""
