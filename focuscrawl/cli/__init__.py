"""Subcommands of the ``focuscrawl`` command line, which call the other packages."""
