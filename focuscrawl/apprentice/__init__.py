"""The apprentice: which links are worth following, learned from the fetches so far (methods 4, 5).

A page becomes facts (`feature_extraction`), these go into a table (`link_table`) and a memory
(`lessons`), a learner (`learners`) fits instances of them (`instances`), and its weights score all
that waits (`scorer`, `evidence`). `apprentice` drives it; `focuscrawl.strategies` connects it to a
crawl, which fetches, queues and stores.
"""
