"""Crawls that are killed, starved and worn down, and what is left of them.

Every test has a short form, for ``make test``, and a long one, for ``make endurance``.
"""
