"""Modules that every other package uses: arrays, files, databases, URLs, networks, processes.

The package also parses values that users write, and checks that extras are installed. Code that
knows about pages, critics or crawls belongs to other packages.
"""
