"""Subcommands of the ``focuscrawl`` command line; the work is done by the other packages."""
