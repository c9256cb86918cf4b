"""Brings the tables of a store up to date, in one transaction."""

from __future__ import annotations

import tempfile
from importlib import resources
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
    config.attributes["connection"] = connection
    with tempfile.TemporaryDirectory() as name:
        _unpack(Path(name))
        config.set_main_option("script_location", name)
        command.upgrade(config, "head")
    connection.execute(
        sa.update(schema.meta)
        .where(schema.meta.c.key == "schema_version")
        .values(value=str(schema.SCHEMA_VERSION))
    )


def _unpack(folder: Path) -> None:
    """Put the scripts where Alembic can find them: they may lie in an egg."""
    scripts = resources.files("focuscrawl.store.migrations")
    (folder / "versions").mkdir()
    (folder / "env.py").write_bytes((scripts / "env.py").read_bytes())
    for script in (scripts / "versions").iterdir():
        if script.name.endswith(".py"):
            (folder / "versions" / script.name).write_bytes(script.read_bytes())
