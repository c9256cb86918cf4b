"""Studies of the pages: how what surrounds a link tells where it leads [A02 section 3.4].

They read the pages of a recorded web and crawl nothing. Each takes `Instances`, and gives a
table; the figures that draw these are in `focuscrawl.lab.figures`.
"""
