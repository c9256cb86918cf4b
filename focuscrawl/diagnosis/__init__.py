"""Why a crawl's harvest falls, or its speed, and what would help [F99 sections 2 and 4.2].

A fall is told from noise, and its causes found, by the outcomes of the fetches.
`focuscrawl.extensions.alarm` and `focuscrawl.report.summary` report it.
"""

from focuscrawl.diagnosis.alarms import (
    ALARM,
    FAST_AGAIN,
    RECOVERED,
    SLOW,
    HarvestMonitor,
    Slowdown,
    SpeedMonitor,
)
from focuscrawl.diagnosis.attribution import Diagnosis, Outcome, Proposal, Share

__all__ = [
    "ALARM",
    "FAST_AGAIN",
    "RECOVERED",
    "SLOW",
    "Diagnosis",
    "HarvestMonitor",
    "Outcome",
    "Proposal",
    "Share",
    "Slowdown",
    "SpeedMonitor",
]
