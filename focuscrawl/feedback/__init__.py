"""Relevance feedback: choosing pages to judge, and applying judgements to a crawl [F99 section 2].

A person or a language model (called teacher) judges the pages. Topic definitions and the training
of their critics are in `focuscrawl.topics`.
"""
