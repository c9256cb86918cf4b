"""The studio: what the commands do, in a browser; ``focuscrawl studio`` serves it.

Here are the server, its access control, its pages and its JSON API. Topics, models and crawls, and
all that is done with them, are in other packages, which define the files and tables.
"""
