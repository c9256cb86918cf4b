"""Spiders of a user's, made from the project's own."""
