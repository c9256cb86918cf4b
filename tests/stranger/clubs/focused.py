"""The project's settings after its owner has read the add-on's page."""

from clubs.settings import *  # noqa: F403

ADDONS = {"focuscrawl.addon.FocusedCrawling": 500}
FOCUSCRAWL_TOPIC = "bicycle"
FOCUSCRAWL_CRITIC = "server.critic:judge"
FOCUSCRAWL_STRATEGY = "best-first"
FOCUSCRAWL_PRIVATE_ADDRESSES = ["127.0.0.0/8"]
COMMANDS_MODULE = "focuscrawl.commands"
