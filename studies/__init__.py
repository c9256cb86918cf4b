"""Research scripts that study single findings of the papers; see README.md."""
