"""The spider ``focused``."""
