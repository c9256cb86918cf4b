"""Schema 3: pages that a crawl fetches once more for their new links."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
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
