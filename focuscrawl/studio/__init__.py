"""The studio: what the commands do, in a browser; ``focuscrawl studio`` serves it.

Here live the server, who may talk to it, the JSON API and the pages over it. What a topic, a
model or a crawl is, and everything that is done with one, is in the rooms of those: nothing here
knows the tables of a store or writes a file of its own making.
"""
