"""Recorded pages: read, cleaned, pruned and written as text."""
