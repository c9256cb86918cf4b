"""Why a crawl's harvest falls, or its speed, and what would help [F99 sections 2 and 4.2].

Here: telling a fall from noise, and its causes, from what came of the fetches. Not here: who
is told (`focuscrawl.extensions.alarm`, `focuscrawl.report.summary`).
"""

from focuscrawl.diagnosis.alarms import (
    ALARM,
    RECOVERED,
    SLOW,
    SPEEDY,
    HarvestWatch,
    Slowness,
    SpeedWatch,
)
from focuscrawl.diagnosis.attribution import Diagnosis, Outcome, Proposal, Share

__all__ = [
    "ALARM",
    "RECOVERED",
    "SLOW",
    "SPEEDY",
    "Diagnosis",
    "HarvestWatch",
    "Outcome",
    "Proposal",
    "Share",
    "Slowness",
    "SpeedWatch",
]
