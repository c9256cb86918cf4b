"""Inputs that nobody would write: what was found is kept, and more can be looked for."""

from pathlib import Path

FOUND = Path(__file__).parent / "found"
