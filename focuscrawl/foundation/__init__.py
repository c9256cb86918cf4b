"""What everything else stands on: arrays, URLs, networks, the cache, folders of models, tables.

Not here: anything that knows of pages, critics or crawls.
"""
