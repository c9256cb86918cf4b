"""Schema 3: what a person asks of a crawl that workers share, and how far each worker is."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_NO = sa.false()


def upgrade() -> None:
    """Add columns to tables that only PostgreSQL has; workers that know none of them go on."""
    if op.get_bind().dialect.name != "postgresql":
        return
    op.add_column("crawl", sa.Column("paused", sa.Boolean, nullable=False, server_default=_NO))
    for column in (
        sa.Column("budget", sa.Integer),
        sa.Column("taken_in", sa.BigInteger),
        sa.Column("in_flight", sa.Integer, nullable=False, server_default="0"),
        sa.Column("paused", sa.Boolean, nullable=False, server_default=_NO),
        sa.Column("stop", sa.Boolean, nullable=False, server_default=_NO),
    ):
        op.add_column("worker", column)
