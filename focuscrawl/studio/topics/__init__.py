"""Topics in the studio: beginning one, training and measuring its critic, examples, classes.

What is done is done by the functions and commands that people type; all of it writes the same
definition. Not here: judging pages of a crawl (`focuscrawl.studio.judging`).
"""
