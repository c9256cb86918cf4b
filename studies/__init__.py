"""Studies of single findings of the papers: research scripts, see README.md."""
