"""The web application of ``focuscrawl studio``: server, access control, pages and JSON API.

The studio runs functions and commands of other packages, and defines no files or tables of its
own. Functions of the studio raise `UserError` for invalid values and files, and browsers show the
error message.
"""
