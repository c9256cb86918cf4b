"""The project's settings after its owner has read half of the add-on's page."""

from clubs.focused import *  # noqa: F403

COMMANDS_MODULE = ""
