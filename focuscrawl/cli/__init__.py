"""The ``focuscrawl`` command: one file a subcommand, each thin over the domain packages."""
