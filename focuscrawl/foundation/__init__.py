"""What everything else stands on: growing arrays, URLs, networks, the cache, folders of models.

Not here: anything that knows of pages, critics or crawls.
"""
