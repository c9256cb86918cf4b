"""Orders of the frontier that are there to be compared with; those for crawls are in `strategies`.

They are found by name like any other strategy.
"""
