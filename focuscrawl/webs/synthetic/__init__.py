"""A generated web for the demo, for tests, and for crawls of any length.

For each request, the page is computed again from the random state and the page number. So a web of
millions of pages needs no more memory than a web of a thousand pages. The modules of the package
`synthetic` create the vocabulary, the layout (hosts, sections, pages, addresses, links) and the
HTML.
"""

from focuscrawl.webs.synthetic.synthetic_web import SyntheticWeb

__all__ = ["SyntheticWeb"]
