"""Recorded pages: parsed, cleaned, pruned and rendered as text."""
