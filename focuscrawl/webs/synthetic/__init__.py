"""A web made of arithmetic: for the demo, for tests, and for crawls of any length.

Every page is computed from (random_state, page number) when it is asked for and forgotten
afterwards, so that a web of millions of pages needs no more memory than one of a thousand.

Here: the vocabulary, the places (hosts, sections, pages), the addresses, who links to whom, and
the HTML. Not here: recorded webs, and the crawler that is let loose on either.
"""

from focuscrawl.webs.synthetic.synthetic_web import SyntheticWeb

__all__ = ["SyntheticWeb"]
