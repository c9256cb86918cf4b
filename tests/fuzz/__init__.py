"""Inputs that nobody would write: what was found is kept, and more can be looked for.

``make fuzz`` searches; ``test_found.py`` and ``test_costs.py`` run what it found, and what it
begins with.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOUND = Path(__file__).parent / "found"  #: what broke something, until it was mended
CORPUS = Path(__file__).parent / "corpus"  #: what cost the most of what is within the limits
WORK = ROOT / ".fuzz"  #: how far searches have come; they go on from there
