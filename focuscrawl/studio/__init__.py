"""The web application of ``focuscrawl studio``: server, access control, pages and JSON API.

The studio runs the functions and commands of other packages, which define all files and tables.
Functions of the studio raise `UserError` for invalid values and files; browsers show the message.
"""
