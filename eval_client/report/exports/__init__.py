"""Runs as files: rows, Inspect's logs, and what forms of whole trials have in common."""
