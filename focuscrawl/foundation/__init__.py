"""What everything else stands on: arrays, URLs, networks, the cache, folders of models, tables.

Also: values that users write, and what is said of extras that are not there. Not here: anything
that knows of pages, critics or crawls.
"""
