"""Brings the tables of a store up to date, in one transaction."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from focuscrawl.store import schema

if TYPE_CHECKING:
    from sqlalchemy import Connection


def revision(version: int) -> str:
    """Return Alembic's name of a schema version."""
    return f"{version:04d}"


def migrate(connection: Connection, version: int) -> None:
    """Migrate a store of schema `version` to the present one; commits nothing.

    Parameters
    ----------
    connection : in a transaction of its own
    """
    # Alembic takes a third of a second to load, and hardly any crawl needs it
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    schema.alembic_version.create(connection, checkfirst=True)
    connection.execute(sa.delete(schema.alembic_version))
    connection.execute(sa.insert(schema.alembic_version), {"version_num": revision(version)})
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    connection.execute(
        sa.update(schema.meta)
        .where(schema.meta.c.key == "schema_version")
        .values(value=str(schema.SCHEMA_VERSION))
    )
