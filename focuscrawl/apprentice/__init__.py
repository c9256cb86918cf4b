"""The apprentice learns during a crawl which links to follow (methods.md 4, 5).

The module `feature_extraction` turns a page into features; `link_table` stores the features. The
module `instances` builds training instances, `learners` fits a model to the instances, and
`scorer` scores queued URLs. The package `focuscrawl.strategies` connects the class
`apprentice.Apprentice` to a crawl.
"""
