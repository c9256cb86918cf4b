"""Schema 2: which worker fetched a page."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column; pages of crawls by one process leave it empty."""
    op.add_column("page", sa.Column("worker", sa.Integer))
