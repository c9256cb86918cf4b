"""A bad web on loopback addresses, served by a process of its own: `python -m server.bad LOG`.

Every case is a host, so that what one does to the crawler touches no other. Here: the cases by
kind, the connection they are answered on, certificates. Not here: what a crawl makes of them.
"""
