"""The web application of ``focuscrawl studio``: server, access control, pages and JSON API.

The studio calls the other packages of focuscrawl, and has no file formats or tables of its own.
Functions of the studio raise `UserError` for invalid values and files, and browsers show the error
message.
"""
