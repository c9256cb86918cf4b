"""A small web on loopback addresses, served by a process of its own: `python -m server LOG`.

Here: its pages, the servers that misbehave as the real ones do, and a critic that reads it.
"""
