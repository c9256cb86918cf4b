"""Schema 3: pages fetched once more; what people ask of workers, and how far these are."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_NO = sa.false()
_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Add what both kinds of store have, and what only one that workers share has."""
    _add_revisits()
    if op.get_bind().dialect.name == "postgresql":
        _add_wishes()


def _add_wishes() -> None:
    """Add columns; workers that know none of them go on."""
    op.add_column("crawl", sa.Column("paused", sa.Boolean, nullable=False, server_default=_NO))
    for column in (
        sa.Column("budget", sa.Integer),
        sa.Column("taken_in", sa.BigInteger),
        sa.Column("in_flight", sa.Integer, nullable=False, server_default="0"),
        sa.Column("paused", sa.Boolean, nullable=False, server_default=_NO),
        sa.Column("stop", sa.Boolean, nullable=False, server_default=_NO),
    ):
        op.add_column("worker", column)


def _add_revisits() -> None:
    """Add a table and its view; crawls that fetch every page once leave them empty."""
    op.create_table(
        "revisit",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("url", _NUMBER, sa.ForeignKey("url.id"), nullable=False),
        sa.Column("asked_at", sa.Integer, nullable=False),
        sa.Column("seq", sa.Integer),
        sa.Column("status", sa.Integer),
        sa.Column("relevance", sa.Float),
        sa.Column("fetched_at", sa.Text),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("etag", sa.Text),
        sa.Column("last_modified", sa.Text),
        sa.Column("links", sa.Integer, nullable=False),
        sa.Column("first_link", _NUMBER),
        sa.Column("memo", sa.LargeBinary),
    )
    op.create_index("ix_revisit_url", "revisit", ["url"])
    op.execute(
        """
        CREATE VIEW revisits AS
        SELECT r.seq, u.url, r.status, r.relevance, r.fetched_at, r.size AS bytes, r.links, r.error
        FROM revisit r JOIN url u ON u.id = r.url WHERE r.seq IS NOT NULL"""
    )
