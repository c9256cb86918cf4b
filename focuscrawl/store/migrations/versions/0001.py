"""Schema 1: the tables as they were made before there were migrations."""

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Change nothing: stores of this schema are made already."""
