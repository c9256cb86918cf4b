"""The apprentice: which links are worth following, learned from the fetches so far (METHODS 4, 5).

Here live the features of links, the learners, and the mathematics that makes one score of all
that is known of a URL. Nothing here fetches, queues or stores: the crawl feeds it judged pages and
asks it for scores.
"""
