"""The apprentice: which links are worth following, learned from the fetches so far (methods 4, 5).

From page to score: `feature_extraction` takes `page_facts` from a page; `memory` keeps them in a
`link_table`, beside outcomes, `labels` and a `training_buffer`; `instances` makes rows of these
that `learners` fit; a `scorer` adds up the `evidence` of all links into a URL by the weights; a
`lesson` scores all that waits by new ones; `apprentice` drives all of it.
`round_training` is for crawls in rounds. Nothing here fetches, queues or
stores: the crawl feeds it judged pages and asks it for scores.
"""
