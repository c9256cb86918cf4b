"""From every earlier schema of the crawl store to the present one, by Alembic.

A change of `focuscrawl.store.schema` or `focuscrawl.store.worker_tables` raises
``SCHEMA_VERSION`` and adds a script to ``versions``, named by the number. SQLite began with 1,
PostgreSQL with 2.
"""

from focuscrawl.store.migrations.upgrade import migrate, revision

__all__ = ["migrate", "revision"]
