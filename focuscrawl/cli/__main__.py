"""``python -m focuscrawl.cli``."""

from focuscrawl.cli.main import main

main()
