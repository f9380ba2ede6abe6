"""The shop's search."""
