"""The web application of ``focuscrawl studio``: server, access control, pages and JSON API.

The studio runs the functions and commands of other packages, which define all files and tables.
"""
