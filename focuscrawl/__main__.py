"""``python -m focuscrawl``."""

from focuscrawl.cli.main import main

main(prog_name="focuscrawl")
