"""Schema 2: which worker fetched a page, and what the next crawl wants to know of it."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add a column that crawls by one process leave empty, and a table that some stores have."""
    op.add_column("page", sa.Column("worker", sa.Integer))
    op.create_table(
        "answer",
        sa.Column("seq", sa.Integer, sa.ForeignKey("page.seq"), primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.Column("headings", sa.Text),
        sa.Column("etag", sa.Text),
        sa.Column("last_modified", sa.Text),
        if_not_exists=True,
    )
