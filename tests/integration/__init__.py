"""Whole crawls and commands: real processes on the synthetic web, recordings and local servers."""
