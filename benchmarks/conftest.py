"""Lets the benchmarks import one another under pytest, as they do when run by themselves."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
