"""The apprentice learns from the fetches of a crawl which links to follow (methods.md 4, 5).

`feature_extraction` turns a page into features, which `link_table` and `online_training` store.
`instances` builds training instances, `learners` fits a model, and `scorer` scores queued URLs.
`focuscrawl.strategies` connects the class `apprentice.Apprentice` to a crawl.
"""
