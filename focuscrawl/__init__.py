"""Focused crawler that learns during a crawl which links lead to relevant pages."""

__version__ = "0.1.0"
