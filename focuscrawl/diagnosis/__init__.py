"""Diagnosis of why the harvest rate or the speed of a crawl has fallen [F99 2 and 4.2].

The modules `focuscrawl.extensions.alarm` and `focuscrawl.report.summary` report alarms, their
causes and remedies.
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
